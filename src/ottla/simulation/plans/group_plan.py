"""What a seed decides about the groups of a run: their protocols, members and timeouts."""

from dataclasses import dataclass
from enum import Enum
from random import Random

from ottla.model.types import Millis


class Kind(Enum):
    CLASSIC = "classic"
    CONSUMER = "consumer"  # KIP-848.
    CLIENT = "client"  # Ottla's own member of a classic group.
    MIXED = "mixed"  # Members of both protocols, so that the group goes from one to the other.


@dataclass(frozen=True, slots=True)
class GroupPlan:
    name: str
    kind: Kind
    members: int
    static: int  # So many of them bear an instance id.
    session_ms: Millis
    rebalance_ms: Millis
    heartbeat_ms: Millis
    commit_ms: Millis
    is_cooperative: bool  # Its classic members keep what they own while they join again.
    calm_seconds: float  # How long a member lives on average until something happens to it.

    @property
    def has_generations(self) -> bool:
        """Whether all members are in the same one; in the new protocol each has its epoch."""
        return self.kind in (Kind.CLASSIC, Kind.CLIENT)

    def __str__(self) -> str:
        return f"{self.name} of {self.members} ({self.static} static)"


def groups_for(seed: int, brokers: int = 1) -> tuple[GroupPlan, ...]:
    chance = Random(f"groups/{brokers}/{seed}")
    if chance.random() < (0.4 if brokers == 1 else 0.6):
        return ()
    if brokers > 1:
        return (_replicated_group(chance),)
    choices = (Kind.CLASSIC, Kind.CLASSIC, Kind.CONSUMER, Kind.CONSUMER, Kind.MIXED)
    kinds = [chance.choice(choices) for _ in range(chance.randint(1, 2))]
    if chance.random() < 0.15:
        kinds.append(Kind.CLIENT)
    session_ms = chance.choice((1_500, 3_000))  # A broker has one for all consumer groups.
    return tuple(
        _group(f"{kind.value}-{number}", kind, session_ms, chance)
        for number, kind in enumerate(kinds)
    )


def _replicated_group(chance: Random) -> GroupPlan:
    """One whose sessions outlast the election of another coordinator."""
    kind = chance.choice((Kind.CLASSIC, Kind.CONSUMER))
    return GroupPlan(
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
    )


def _group(name: str, kind: Kind, session_ms: Millis, chance: Random) -> GroupPlan:
    members = chance.randint(1, 4)
    return GroupPlan(
        name=name,
        kind=kind,
        members=members,
        static=0 if kind is Kind.CLIENT else chance.choice((0, 0, 1, members)),
        session_ms=session_ms,
        rebalance_ms=chance.choice((2_000, 4_000)),
        heartbeat_ms=chance.choice((200, 400)),
        commit_ms=chance.choice((100, 500)),
        is_cooperative=chance.random() < 0.4,
        calm_seconds=chance.choice((1.0, 3.0, 8.0)),
    )


def group_settings(groups: tuple[GroupPlan, ...], seed: int) -> dict[str, str]:
    """How a broker is set that short runs show what takes minutes otherwise."""
    if not groups:
        return {}
    chance = Random(f"group settings/{seed}")
    return {
        "group.min.session.timeout.ms": "500",
        "group.initial.rebalance.delay.ms": str(chance.choice((0, 100, 1_000))),
        "group.consumer.min.session.timeout.ms": "1",
        "group.consumer.session.timeout.ms": str(groups[0].session_ms),
        "group.consumer.min.heartbeat.interval.ms": "1",
        "group.consumer.heartbeat.interval.ms": str(groups[0].heartbeat_ms),
        "offsets.topic.num.partitions": str(chance.choice((1, 3))),
        "offsets.topic.segment.bytes": str(1 << 20),
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": str(chance.choice((300, 2_000))),
    }
