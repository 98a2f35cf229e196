"""Small plans: what tests of the simulation itself run."""

from collections.abc import Sequence
from dataclasses import replace

from ottla.metadata.image.features import METADATA_VERSION_MAX
from ottla.simulation.history.history import IDEMPOTENT
from ottla.simulation.plans.group_plan import GroupPlan, Kind
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.plans.swarm import plan_for, with_groups
from ottla.simulation.world.loop import MILLISECOND


def small_plan(
    seed: int = 1, rates: Rates | None = None, *, is_synced: bool = False, brokers: int = 1
) -> Plan:
    settings = {"auto.create.topics.enable": "false", "broker.session.timeout.ms": "3000"}
    if is_synced:
        settings["log.flush.interval.messages"] = "1"
    plan = plan_for(seed, brokers)
    return replace(
        plan,
        delay_ns_mean=min(plan.delay_ns_mean, 3 * MILLISECOND),
        seconds=1.0 if brokers == 1 else 2.0,
        topics=1,
        partitions=2,
        producers=(IDEMPOTENT,),
        consumers=1,
        session_consumers=0,
        old_consumers=0,
        records_per_second=40.0 if brokers == 1 else 30.0,
        is_synced=is_synced,
        log_dirs=1,
        rates=rates or Rates(),
        settings=settings,
        topic_configs={"internal.segment.bytes": "16384"},
        groups=(),
        hostile_clients=0,
        keyed_producers=0,
        is_racked=False,
        metadata_version=METADATA_VERSION_MAX,
        is_restarted=brokers == 1,
    )


def small_cluster(
    seed: int = 1, rates: Rates | None = None, *, is_synced: bool = False, brokers: int = 3
) -> Plan:
    return small_plan(seed, rates, is_synced=is_synced, brokers=brokers)


def group_plan(
    seed: int = 1,
    rates: Rates | None = None,
    kinds: Sequence[Kind] = (Kind.CLASSIC, Kind.CONSUMER),
    *,
    is_cooperative: bool = False,
) -> Plan:
    """A group of two members of each of these kinds, one of them static."""
    groups = tuple(
        GroupPlan(
            name=kind.value,
            kind=kind,
            members=2,
            static=int(kind is not Kind.CLIENT),
            session_ms=1_000,
            rebalance_ms=1_500,
            heartbeat_ms=200,
            commit_ms=200,
            is_cooperative=is_cooperative,
            calm_seconds=1.0,
        )
        for kind in kinds
    )
    plan = replace(small_plan(seed), producers=(), consumers=0)
    return replace(with_groups(plan, groups), rates=rates or Rates(), seconds=4.0)
