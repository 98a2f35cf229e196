"""What a seed decides: how large the run is, how the broker is set, and what goes wrong in it."""

from dataclasses import dataclass, replace
from random import Random
from typing import Final

from ottla.broker.hosting import AT_ONCE_MAX
from ottla.simulation.group_plan import GroupPlan, group_settings, groups_for
from ottla.simulation.history import ACKS_NONE, ACKS_ONE, IDEMPOTENT, Guarantee
from ottla.simulation.loop import MICROSECOND

GUARANTEES: Final = (IDEMPOTENT, IDEMPOTENT, IDEMPOTENT, ACKS_ONE, ACKS_NONE)


@dataclass(frozen=True, slots=True)
class Rates:
    """How often something happens, per virtual second."""

    reset: float = 0.0
    clog: float = 0.0
    kill: float = 0.0
    power_loss: float = 0.0
    disk_full: float = 0.0
    disk_error: float = 0.0
    clean_restart: float = 0.0
    topic_deletion: float = 0.0
    clock_jump: float = 0.0
    record_deletion: float = 0.0
    config_change: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    seconds: float  # Of virtual time with faults; then everything heals.
    topics: int
    partitions: int
    producers: tuple[Guarantee, ...]
    consumers: int
    records_per_second: float  # Per producer.
    value_bytes_max: int
    is_synced: bool  # Whether the broker syncs before it acknowledges.
    log_dirs: int
    rates: Rates
    settings: dict[str, str]
    topic_configs: dict[str, str]
    delay_ns_mean: int
    groups: tuple[GroupPlan, ...] = ()
    session_consumers: int = 0  # So many of the consumers use incremental fetch sessions.
    old_consumers: int = 0  # So many of the others send no leader epochs.
    hosted_at_once: int = AT_ONCE_MAX  # New logs of one change; workers make the others.

    @property
    def has_sick_disk(self) -> bool:
        return bool(self.rates.disk_full or self.rates.disk_error)

    @property
    def is_known_everywhere(self) -> bool:
        """Whether a topic that was confirmed is known to whoever is asked."""
        return True

    @property
    def may_lose_acknowledged(self) -> bool:
        """Without a sync before it, an acknowledgement does not survive a power loss."""
        return bool(self.rates.power_loss) and not self.is_synced

    @property
    def retention_bytes(self) -> int | None:
        kept = self.topic_configs.get("retention.bytes")
        return None if kept is None else int(kept)

    @property
    def is_trimmed(self) -> bool:
        return bool(self.rates.record_deletion) or self.retention_bytes is not None

    def __str__(self) -> str:
        rates = {name: getattr(self.rates, name) for name in Rates.__slots__}
        happening = " ".join(f"{name}={rate}" for name, rate in rates.items() if rate)
        producers = ", ".join(guarantee.name for guarantee in self.producers)
        groups = ", ".join(str(group) for group in self.groups) or "none"
        return (
            f"{self.seconds} s; {self.topics}x{self.partitions} partitions in {self.log_dirs} "
            f"dirs; producers: {producers}; {self.consumers} consumers; "
            f"groups: {groups}; "
            f"{'synced' if self.is_synced else 'not synced'}; {happening or 'no faults'}"
        )


def plan_for(seed: int) -> Plan:
    """Each run has only some of the faults, so that none hides what another would show."""
    plan = with_changes(plan_without_groups(seed))
    # Without a sync nobody can say which offsets a power loss may take.
    return plan if plan.may_lose_acknowledged else with_groups(plan, groups_for(seed))


def with_groups(plan: Plan, groups: tuple[GroupPlan, ...]) -> Plan:
    """Groups take a while to show anything."""
    if not groups:
        return plan
    chance = Random(f"clock/{plan.seed}")
    rates = replace(plan.rates, clock_jump=chance.choice((0.0, 0.5)))
    settings = plan.settings | group_settings(groups, plan.seed)
    settings["log.cleaner.backoff.ms"] = str(chance.choice((100, 15_000)))
    seconds = plan.seconds + 5.0
    return replace(plan, groups=groups, rates=rates, settings=settings, seconds=seconds)


def with_changes(plan: Plan) -> Plan:
    """Some runs have records deleted, logs that are kept small, configs altered, fetch sessions."""
    chance = Random(f"changes/{plan.seed}")
    rates, settings, configs = plan.rates, dict(plan.settings), dict(plan.topic_configs)
    if chance.random() < 0.3:
        rates = replace(rates, record_deletion=chance.choice((0.5, 2.0)))
    if chance.random() < 0.3:
        rates = replace(rates, config_change=chance.choice((0.5, 2.0)))
    if chance.random() < 0.25:
        configs |= {"retention.bytes": "10000", "internal.segment.bytes": "4096"}
        settings["log.retention.check.interval.ms"] = "200"
    settings["max.incremental.fetch.session.cache.slots"] = str(chance.choice((0, 1, 1000)))
    session_consumers = chance.randint(0, plan.consumers)
    return replace(
        plan,
        rates=rates,
        settings=settings,
        topic_configs=configs,
        session_consumers=session_consumers,
    )


def plan_without_groups(seed: int) -> Plan:
    """What a seed decided before there were groups: seeds that found something then still do."""
    chance = Random(f"plan/{seed}")

    def maybe(probability: float, *choices: float) -> float:
        rate = chance.choice(choices)
        return rate if chance.random() < probability else 0.0

    is_synced = chance.random() < 0.35
    power_loss = maybe(0.8, 0.2, 0.5, 1.0) if is_synced else maybe(0.1, 0.3)
    rates = Rates(
        reset=maybe(0.6, 0.5, 2.0, 10.0),
        clog=maybe(0.3, 0.2, 1.0),
        kill=maybe(0.7, 0.2, 0.5, 1.0),
        power_loss=power_loss,
        disk_full=maybe(0.25, 0.2, 0.5),
        # A failed sync and a later power loss together lose what nobody can save.
        disk_error=0.0 if power_loss else maybe(0.25, 0.1, 0.3),
        clean_restart=maybe(0.3, 0.2, 0.5),
        topic_deletion=maybe(0.4, 0.3, 1.0),
    )
    settings = {
        "auto.create.topics.enable": "false",  # A late producer must not bring a topic back.
        "log.index.interval.bytes": str(chance.choice((128, 4096))),
        "log.index.size.max.bytes": str(chance.choice((1 << 10, 10 << 20))),
        "log.flush.offset.checkpoint.interval.ms": str(chance.choice((100, 60_000))),
        "metadata.log.max.record.bytes.between.snapshots": str(chance.choice((2_000, 20_971_520))),
        "log.flush.scheduler.interval.ms": str(chance.choice((500, 60_000))),
    }
    if is_synced:
        settings["log.flush.interval.messages"] = "1"
    return Plan(
        seed=seed,
        seconds=chance.choice((3.0, 6.0, 10.0)),
        topics=chance.randint(1, 3),
        partitions=chance.randint(1, 3),
        producers=tuple(chance.choice(GUARANTEES) for _ in range(chance.randint(1, 4))),
        consumers=chance.randint(1, 2),
        records_per_second=chance.choice((20.0, 50.0, 100.0)),
        value_bytes_max=chance.choice((40, 400, 2_000)),
        is_synced=is_synced,
        log_dirs=chance.choice((1, 1, 2)),
        rates=rates,
        settings=settings,
        # Small files, so that a short run rolls, indexes and checkpoints often.
        topic_configs={"internal.segment.bytes": str(chance.choice((4, 16, 1024)) << 10)},
        delay_ns_mean=chance.choice((50, 300, 3_000)) * MICROSECOND,
    )
