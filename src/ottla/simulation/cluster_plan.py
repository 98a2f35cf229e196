"""What a seed decides for a whole cluster: its nodes, its clients, and what goes wrong in it.

Each run has only some of the faults, so that none hides what another would show. Whoever looks for
the cause of a failure takes away more of them (`without`), as long as it still fails.
"""

from dataclasses import dataclass, fields, replace
from random import Random
from typing import Final

from ottla.broker.hosting import AT_ONCE_MAX
from ottla.simulation.group_plan import GroupPlan, Kind, group_settings
from ottla.simulation.history import IDEMPOTENT
from ottla.simulation.loop import MICROSECOND
from ottla.simulation.plan import Plan, Rates

BROKERS: Final = 3
# A coordinator that was cut off may answer what is not so any more, until it hears of it. That is
# Kafka's protocol, and the history of groups does not allow for it.
DELAYS: Final = ("clog", "pause", "partition", "one_way", "lonely_client", "slow_link")
CLIENTS: Final = ("producers", "consumers", "groups")


@dataclass(frozen=True, slots=True)
class ClusterRates(Rates):
    """How often something happens, per virtual second, to one node, one link or all of them."""

    blackout: float = 0.0  # All lose their power at once.
    pause: float = 0.0
    partition: float = 0.0  # The nodes fall apart, in both directions,
    one_way: float = 0.0  # or one does not hear another.
    lonely_client: float = 0.0  # A client is cut off from a node.
    slow_link: float = 0.0
    reassignment: float = 0.0
    election: float = 0.0
    voter_change: float = 0.0


@dataclass(frozen=True, slots=True)
class ClusterPlan(Plan):
    rates: ClusterRates
    brokers: int = BROKERS
    is_restarted: bool = False  # In the end, cleanly, all nodes one after the other.

    @property
    def is_known_everywhere(self) -> bool:
        """Each node reads the metadata log in its own time."""
        return False

    @property
    def may_lose_acknowledged(self) -> bool:
        """Nobody loses power whose records are not kept by someone else."""
        return False

    @property
    def is_delayed(self) -> bool:
        """Requests may arrive after whoever sent them has given up, and asked someone else."""
        return any(getattr(self.rates, name) for name in DELAYS)

    def happening(self) -> dict[str, float]:
        rates = {field.name: getattr(self.rates, field.name) for field in fields(self.rates)}
        return {name: rate for name, rate in rates.items() if rate}

    def __str__(self) -> str:
        rates = " ".join(f"{name}={rate}" for name, rate in self.happening().items())
        groups = ", ".join(str(group) for group in self.groups) or "none"
        return (
            f"{self.brokers} nodes, {self.seconds} s; {self.topics}x{self.partitions} partitions; "
            f"{len(self.producers)} producers; {self.consumers} consumers; groups: {groups}; "
            f"{'synced' if self.is_synced else 'not synced'}; {rates or 'no faults'}"
        )


def without(plan: ClusterPlan, names: tuple[str, ...]) -> ClusterPlan:
    """The same run with some kinds of faults, or of clients, left out. KeyError: no such kind."""
    rates = {field.name for field in fields(plan.rates)}
    for name in names:
        if name in rates:
            plan = replace(plan, rates=replace(plan.rates, **{name: 0.0}))
        elif name == "groups":
            plan = replace(plan, groups=())
        elif name == "producers":
            plan = replace(plan, producers=plan.producers[:1])
        elif name == "consumers":
            plan = replace(plan, consumers=0)
        else:
            raise KeyError(name)
    return plan


def cluster_plan_for(seed: int, brokers: int = BROKERS) -> ClusterPlan:
    chance = Random(f"cluster/{seed}")

    is_synced = chance.random() < 0.3
    rates = _rates(chance, is_synced=is_synced)
    groups = _groups(seed) if chance.random() < 0.35 else ()
    if groups:
        rates = replace(rates, **dict.fromkeys(DELAYS, 0.0))
    rates = replace(rates, **_administration(seed))
    return ClusterPlan(
        seed=seed,
        seconds=chance.choice((4.0, 7.0, 10.0)),
        topics=chance.randint(1, 2),
        partitions=chance.randint(1, 3),
        producers=(IDEMPOTENT,) * chance.randint(1, 3),
        consumers=chance.randint(1, 2),
        records_per_second=chance.choice((10.0, 30.0)),
        value_bytes_max=chance.choice((40, 400)),
        is_synced=is_synced,
        log_dirs=1,
        rates=rates,
        settings=_group_settings(groups, seed) | _settings(chance, is_synced=is_synced),
        topic_configs={"internal.segment.bytes": str(chance.choice((4, 16, 1024)) << 10)},
        delay_ns_mean=chance.choice((100, 300, 2_000)) * MICROSECOND,
        groups=groups,
        brokers=brokers,
        old_consumers=Random(f"cluster readers/{seed}").randint(0, 1),
        hosted_at_once=Random(f"cluster hosting/{seed}").choice((0, 1, AT_ONCE_MAX)),
        is_restarted=chance.random() < 0.25,
    )


def _rates(chance: Random, *, is_synced: bool) -> ClusterRates:
    def maybe(probability: float, *choices: float) -> float:
        rate = chance.choice(choices)
        return rate if chance.random() < probability else 0.0

    rates = ClusterRates(
        reset=maybe(0.3, 0.3, 1.0),
        clog=maybe(0.2, 0.2, 0.5),
        kill=maybe(0.5, 0.1, 0.3, 0.6),
        power_loss=maybe(0.4, 0.1, 0.3),
        clean_restart=maybe(0.2, 0.1, 0.2),
        topic_deletion=maybe(0.25, 0.2, 0.5),
        clock_jump=maybe(0.2, 0.5),
        config_change=maybe(0.25, 0.5),
        blackout=maybe(0.5, 0.1, 0.2) if is_synced else 0.0,
        pause=maybe(0.35, 0.1, 0.3),
        partition=maybe(0.35, 0.1, 0.3),
        one_way=maybe(0.25, 0.1, 0.3),
        lonely_client=maybe(0.2, 0.2, 0.5),
        slow_link=maybe(0.2, 0.2, 0.5),
        reassignment=maybe(0.25, 0.2, 0.5),
        election=maybe(0.2, 0.2, 0.5),
    )
    if not (rates.power_loss or rates.blackout):
        # A failed sync and a later power loss together lose what nobody can save.
        disk_error = maybe(0.25, 0.1, 0.2)
        rates = replace(rates, disk_full=maybe(0.25, 0.1, 0.3), disk_error=disk_error)
    return rates


def _administration(seed: int) -> dict[str, float]:
    """From its own randomness: what came later does not change what other seeds have found."""
    chance = Random(f"cluster administration/{seed}")
    return {
        "record_deletion": chance.choice((0.5, 2.0)) if chance.random() < 0.25 else 0.0,
        "voter_change": chance.choice((0.3, 1.0)) if chance.random() < 0.25 else 0.0,
    }


def _settings(chance: Random, *, is_synced: bool) -> dict[str, str]:
    settings = {
        "auto.create.topics.enable": "false",  # A late producer must not bring a topic back.
        "broker.session.timeout.ms": str(chance.choice((3_000, 9_000))),
        "broker.heartbeat.interval.ms": str(chance.choice((500, 2_000))),
        "replica.lag.time.max.ms": str(chance.choice((1_500, 10_000))),
        "replica.fetch.backoff.ms": str(chance.choice((200, 1_000))),
        "log.flush.offset.checkpoint.interval.ms": str(chance.choice((200, 60_000))),
        "replica.high.watermark.checkpoint.interval.ms": str(chance.choice((200, 5_000))),
        "metadata.log.max.record.bytes.between.snapshots": str(chance.choice((2_000, 20_971_520))),
        "metadata.max.retention.bytes": str(chance.choice((1, 104_857_600))),
        "ottla.disk.reserve.bytes": "4096",
    }
    if is_synced:
        settings["log.flush.interval.messages"] = "1"
    return settings


def _groups(seed: int) -> tuple[GroupPlan, ...]:
    chance = Random(f"cluster groups/{seed}")
    kind = chance.choice((Kind.CLASSIC, Kind.CONSUMER))
    return (
        GroupPlan(
            name=f"{kind.value}-0",
            kind=kind,
            members=chance.randint(1, 3),
            static=0,
            session_ms=chance.choice((3_000, 6_000)),
            rebalance_ms=4_000,
            heartbeat_ms=400,
            commit_ms=500,
            is_cooperative=False,
            calm_seconds=chance.choice((3.0, 8.0)),
        ),
    )


def _group_settings(groups: tuple[GroupPlan, ...], seed: int) -> dict[str, str]:
    """Offsets do not expire: there is no one coordinator whose clock would count."""
    if not groups:
        return {}
    return group_settings(groups, seed) | {"offsets.retention.minutes": "10080"}
