"""The plan of a seed, by swarm testing: each run has only some of the faults and of the clients.

So no fault hides what another would show. Subjects draw from a randomness of their own: a new
choice in one does not change the others.
"""

from dataclasses import fields, replace
from random import Random
from typing import Final

from ottla.broker.partitions.hosting import AT_ONCE_MAX
from ottla.simulation.history.history import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    ACKS_ONE,
    IDEMPOTENT,
    PIPELINED,
    Guarantee,
)
from ottla.simulation.plans.group_plan import GroupPlan, group_settings, groups_for
from ottla.simulation.plans.plan import ADMINISTRATION, DELAYS, Plan, Rates
from ottla.simulation.plans.swarm_additions import with_additions
from ottla.simulation.world.loop import MICROSECOND, MILLISECOND

GUARANTEES_ALONE: Final = (IDEMPOTENT, IDEMPOTENT, PIPELINED, PIPELINED, ACKS_ONE, ACKS_NONE)
GUARANTEES: Final = (IDEMPOTENT,) * 3 + (PIPELINED,) * 3 + (ACKS_ALL, ACKS_LEADER, ACKS_NONE)
# How much more of everything: so followers lag, and faults meet each other.
FACTORS: Final = (1, 1, 3, 10)
RATE_MAX: Final = 2.0
RECORDS_PER_SECOND_MAX: Final = 150.0
DELAY_NS_MAX: Final = 30 * MILLISECOND
PRODUCERS_HOT: Final = 2
FETCH_DELAYS: Final = 4  # There and back, and some to spare.
SECONDS_HOT: Final = 5.0
# Faults and changes for which there must be another node.
OF_SEVERAL: Final = (
    "bit_rot",
    "blackout",
    "partition",
    "one_way",
    "slow_link",
    "reassignment",
    "election",
    "voter_change",
    "min_isr_change",
    "elr_change",
    "unclean_change",
)


def plan_for(seed: int, brokers: int = 1) -> Plan:
    chance = Random(f"plan/{brokers}/{seed}")
    is_alone = brokers == 1
    is_synced = chance.random() < 0.35
    rates = _rates(chance, is_synced=is_synced, is_alone=is_alone)
    consumers = chance.randint(1, 2)
    session_consumers = chance.randint(0, consumers)
    kinds = GUARANTEES_ALONE if is_alone else GUARANTEES
    producers: tuple[Guarantee, ...] = (chance.choice((IDEMPOTENT, PIPELINED)),)
    producers += tuple(chance.choice(kinds) for _ in range(chance.randint(0, 3)))
    plan = Plan(
        seed=seed,
        brokers=brokers,
        seconds=chance.choice((4.0, 7.0, 10.0)),
        topics=chance.randint(1, 3),
        partitions=chance.randint(1, 3),
        producers=producers,
        consumers=consumers,
        records_per_second=chance.choice((20.0, 50.0, 100.0) if is_alone else (10.0, 30.0)),
        value_bytes_max=chance.choice((40, 400, 2_000)),
        is_synced=is_synced,
        log_dirs=chance.choice((1, 1, 2)),
        rates=rates,
        settings=_settings(Random(f"settings/{seed}"), is_synced=is_synced),
        # Small files, so that a short run rolls, indexes and checkpoints often.
        topic_configs={"internal.segment.bytes": str(chance.choice((4, 16, 1024)) << 10)},
        delay_ns_mean=chance.choice((50, 300, 3_000)) * MICROSECOND,
        session_consumers=session_consumers,
        old_consumers=chance.randint(0, consumers - session_consumers),
        hosted_at_once=chance.choice((0, 1, AT_ONCE_MAX)),
        disk_factor=Random(f"disk/{seed}").choice((1, 1, 3, 10)),
        is_restarted=is_alone or chance.random() < 0.25,
    )
    plan = _with_intensity(_with_safety_changes(_with_retention(plan)))
    if plan.may_lose_acknowledged:
        # Where records are lost, sequences are, too: only our own client begins again.
        producers = tuple(IDEMPOTENT if one is PIPELINED else one for one in plan.producers)
        plan = replace(plan, producers=producers)
    plan = with_additions(plan)
    # Without a sync nobody can say which offsets a power loss may take.
    return plan if plan.may_lose_acknowledged else with_groups(plan, groups_for(seed, brokers))


def with_groups(plan: Plan, groups: tuple[GroupPlan, ...]) -> Plan:
    """Groups take a while to show anything.

    A coordinator that is cut off may answer from a state that is over, until it hears of its
    successor. That is Kafka's protocol, and while there is one the history of groups allows for it:
    so a share of the clusters with groups has no delays, and is judged strictly at any time.
    """
    if not groups:
        return plan
    chance = Random(f"clock/{plan.seed}")
    is_delayed = Random(f"group delays/{plan.brokers}/{plan.seed}").random() < 0.4
    delays = ("pause",) if plan.is_alone else () if is_delayed else DELAYS
    rates = replace(plan.rates, clock_jump=chance.choice((0.0, 0.5)), **dict.fromkeys(delays, 0.0))
    settings = plan.settings | group_settings(groups, plan.seed)
    settings["log.cleaner.backoff.ms"] = str(chance.choice((100, 15_000)))
    if not plan.is_alone:  # There is no one coordinator whose clock would count.
        settings["offsets.retention.minutes"] = "10080"
    seconds = plan.seconds + (5.0 if plan.is_alone else 0.0)
    return replace(plan, groups=groups, rates=rates, settings=settings, seconds=seconds)


def _with_safety_changes(plan: Plan) -> Plan:
    """Some runs change the replication factor, min.insync.replicas, the ELR, or the partitions."""
    chance = Random(f"safety/{plan.brokers}/{plan.seed}")
    growth, min_isr, elr = ((chance.choice((0.3, 1.0)), chance.random()) for _ in range(3))
    rates = replace(plan.rates, partition_growth=growth[0] if growth[1] < 0.2 else 0.0)
    if plan.is_alone:
        return replace(plan, rates=rates)
    # Without the ELR a broker that lost power, and records, stays in the ISR. With it, a partition
    # may still be moved to that broker alone, before the controller hears of its loss.
    loses_nothing = plan.is_synced or not rates.power_loss
    rates = replace(
        rates,
        min_isr_change=min_isr[0] if min_isr[1] < 0.3 else 0.0,
        elr_change=elr[0] if elr[1] < 0.2 and loses_nothing else 0.0,
    )
    replicas_min = chance.choice((1, 2)) if loses_nothing else 2
    return replace(plan, rates=rates, replicas_min=replicas_min)


def _with_intensity(plan: Plan) -> Plan:
    """Traffic, delays and faults, each by its own factor."""
    chance = Random(f"intensity/{plan.brokers}/{plan.seed}")
    traffic, delays, faults = (chance.choice(FACTORS) for _ in range(3))
    is_hot = max(traffic, faults) > 1
    rates = {
        field.name: min(rate * faults, max(rate, RATE_MAX))
        for field in fields(plan.rates)
        if field.name not in ADMINISTRATION and (rate := getattr(plan.rates, field.name))
    }
    hot = replace(
        plan,
        seconds=min(plan.seconds, SECONDS_HOT) if is_hot else plan.seconds,
        producers=plan.producers[:PRODUCERS_HOT] if is_hot else plan.producers,
        records_per_second=min(plan.records_per_second * traffic, RECORDS_PER_SECOND_MAX),
        rates=replace(plan.rates, **rates),
    )
    delay_ns = min(plan.delay_ns_mean * delays, DELAY_NS_MAX)
    return replace(hot, delay_ns_mean=min(delay_ns, _bearable_delay_ns(hot)))


def _bearable_delay_ns(plan: Plan) -> int:
    """With which followers keep up: a fetch brings one segment of a partition at most."""
    bytes_per_second = plan.records_per_second * len(plan.producers) * plan.value_bytes_max
    of_a_partition = max(bytes_per_second / (plan.topics * plan.partitions), 1.0)
    segment_bytes = int(plan.topic_configs["internal.segment.bytes"])
    return int(segment_bytes / of_a_partition * 1e9) // FETCH_DELAYS


def _with_retention(plan: Plan) -> Plan:
    """Some logs are kept small."""
    chance = Random(f"retention/{plan.seed}")
    if chance.random() >= 0.25:
        return plan
    configs = plan.topic_configs | {
        "retention.bytes": "4000",
        "internal.segment.bytes": "4096",
    }
    settings = plan.settings | {"log.retention.check.interval.ms": "200"}
    return replace(plan, topic_configs=configs, settings=settings)


def _rates(chance: Random, *, is_synced: bool, is_alone: bool) -> Rates:
    def maybe(probability: float, *choices: float) -> float:
        rate = chance.choice(choices)
        return rate if chance.random() < probability else 0.0

    rates = Rates(
        reset=maybe(0.4, 0.3, 1.0, 5.0),
        clog=maybe(0.25, 0.2, 0.5),
        kill=maybe(0.6, 0.1, 0.3, 0.6),
        power_loss=maybe(0.8 if is_synced else 0.1 if is_alone else 0.3, 0.1, 0.3),
        blackout=maybe(0.5, 0.1, 0.2) if is_synced else 0.0,
        clean_restart=maybe(0.25, 0.1, 0.2),
        clock_jump=maybe(0.2, 0.5),
        pause=maybe(0.35, 0.1, 0.3),
        partition=maybe(0.35, 0.1, 0.3),
        one_way=maybe(0.25, 0.1, 0.3),
        lonely_client=maybe(0.2, 0.2, 0.5),
        slow_link=maybe(0.2, 0.2, 0.5),
        topic_deletion=maybe(0.3, 0.2, 0.5),
        record_deletion=maybe(0.25, 0.5, 2.0),
        config_change=maybe(0.25, 0.5, 2.0),
        reassignment=maybe(0.25, 0.2, 0.5),
        election=maybe(0.2, 0.2, 0.5),
        voter_change=maybe(0.25, 0.3, 1.0),
    )
    if is_alone:
        rates = replace(rates, **dict.fromkeys(OF_SEVERAL, 0.0))
    if not (rates.power_loss or rates.blackout):
        # A failed sync and a later power loss together lose what nobody can save.
        disk_error = maybe(0.25, 0.1, 0.3)
        rates = replace(rates, disk_full=maybe(0.25, 0.1, 0.3), disk_error=disk_error)
    return rates


def _settings(chance: Random, *, is_synced: bool) -> dict[str, str]:
    settings = {
        "auto.create.topics.enable": "false",  # A late producer must not bring a topic back.
        "broker.session.timeout.ms": str(chance.choice((3_000, 9_000))),
        "broker.heartbeat.interval.ms": str(chance.choice((500, 2_000))),
        "replica.lag.time.max.ms": str(chance.choice((1_500, 10_000))),
        "replica.fetch.backoff.ms": str(chance.choice((200, 1_000))),
        "log.index.interval.bytes": str(chance.choice((128, 4096))),
        "log.index.size.max.bytes": str(chance.choice((1 << 10, 10 << 20))),
        "log.flush.scheduler.interval.ms": str(chance.choice((500, 60_000))),
        "log.flush.offset.checkpoint.interval.ms": str(chance.choice((200, 60_000))),
        "replica.high.watermark.checkpoint.interval.ms": str(chance.choice((200, 5_000))),
        "metadata.log.max.record.bytes.between.snapshots": str(chance.choice((2_000, 20_971_520))),
        "metadata.max.retention.bytes": str(chance.choice((1, 104_857_600))),
        "max.incremental.fetch.session.cache.slots": str(chance.choice((0, 1, 1000))),
        "ottla.disk.reserve.bytes": "4096",
    }
    if is_synced:
        settings["log.flush.interval.messages"] = "1"
    return settings
