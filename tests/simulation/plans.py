"""Directed plans: one busy partition and chosen faults, for bugs that are known by their causes."""

from dataclasses import replace

from ottla.metadata.image.features import METADATA_VERSION_MAX
from ottla.simulation.history.history import IDEMPOTENT
from ottla.simulation.plans.group_plan import GroupPlan, Kind
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.plans.swarm import plan_for, with_groups
from ottla.simulation.plans.swarm_additions import HOUSEKEEPING
from ottla.simulation.world.loop import MILLISECOND

DELAY_NS_MAX = 3 * MILLISECOND
LAGGING_DELAY_NS = 10 * MILLISECOND
SYNC = "log.flush.interval.messages"


def busy_plan(seed: int, rates: Rates, *, brokers: int = 3, is_synced: bool | None = None) -> Plan:
    """Two producers at one partition; it is synced where all lose power, if not said otherwise."""
    is_synced = bool(rates.blackout) if is_synced is None else is_synced
    plan = plan_for(seed, brokers)
    settings = {key: value for key, value in plan.settings.items() if key != SYNC}
    settings |= {"broker.session.timeout.ms": "3000", "replica.lag.time.max.ms": "1500"}
    if is_synced:
        settings[SYNC] = "1"
    return replace(
        plan,
        seconds=5.0,
        topics=1,
        partitions=1,
        producers=(IDEMPOTENT,) * 2,
        consumers=1,
        session_consumers=0,
        old_consumers=0,
        records_per_second=60.0,
        is_synced=is_synced,
        log_dirs=1,
        rates=rates,
        settings=settings,
        topic_configs={"internal.segment.bytes": "16384"},
        delay_ns_mean=min(plan.delay_ns_mean, DELAY_NS_MAX),
        groups=(),
        hostile_clients=0,
        keyed_producers=0,
        is_racked=False,
        metadata_version=METADATA_VERSION_MAX,
        replicas_min=2,
        is_restarted=False,
    )


def lonely_plan(seed: int, rates: Rates) -> Plan:
    """The busy one with a single node, which is restarted in the end."""
    return replace(busy_plan(seed, rates, brokers=1), is_restarted=True)


def snapshot_plan(seed: int, rates: Rates) -> Plan:
    """A short busy one whose nodes load snapshots of the metadata when they start."""
    plan = busy_plan(seed, rates)
    settings = plan.settings | {"metadata.log.max.record.bytes.between.snapshots": "500"}
    return replace(plan, seconds=2.5, settings=settings)


def lagging_plan(seed: int, rates: Rates) -> Plan:
    """The same with slow links and more records, so that followers are behind."""
    plan = busy_plan(seed, rates)
    return replace(plan, delay_ns_mean=LAGGING_DELAY_NS, records_per_second=150.0)


def shifting_plan(seed: int, rates: Rates) -> Plan:
    """The lagging one for a second longer, so that several changes of what is safe meet faults."""
    return replace(lagging_plan(seed, rates), seconds=6.0)


def stopping_plan(seed: int, rates: Rates) -> Plan:
    """The busy one whose records one replica in sync may acknowledge alone, with long sessions."""
    plan = busy_plan(seed, rates)
    settings = plan.settings | {"broker.session.timeout.ms": "9000"}
    configs = plan.topic_configs | {"min.insync.replicas": "1"}
    return replace(plan, seconds=8.0, settings=settings, topic_configs=configs)


def rotting_plan(seed: int, rates: Rates) -> Plan:
    """The busy one with segments that are sealed and checkpointed soon, so that they can rot."""
    plan = busy_plan(seed, rates)
    configs = {"internal.segment.bytes": "4096"}
    return replace(plan, settings=plan.settings | HOUSEKEEPING, topic_configs=configs)


def resized_plan(seed: int, rates: Rates) -> Plan:
    """The lagging one whose partition is reassigned to one, two or three replicas."""
    return replace(lagging_plan(seed, rates), replicas_min=1)


def lagging_group_plan(seed: int, rates: Rates) -> Plan:
    """The same with a group whose coordinator moves."""
    group = GroupPlan(
        name="group",
        kind=Kind.CLASSIC,
        members=2,
        static=0,
        session_ms=3_000,
        rebalance_ms=4_000,
        heartbeat_ms=200,
        commit_ms=100,
        is_cooperative=False,
        calm_seconds=2.0,
    )
    return replace(with_groups(lagging_plan(seed, rates), (group,)), rates=rates)


def shifting_group_plan(seed: int, rates: Rates) -> Plan:
    return replace(lagging_group_plan(seed, rates), seconds=6.0)
