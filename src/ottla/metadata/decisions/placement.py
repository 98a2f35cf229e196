"""Placement of new replicas: striped over racks and over the brokers of each.

Pure: randomness comes as `below(n)`, a number from 0 to n - 1. As in Kafka, each partition starts
on the next rack, takes a broker of each rack in turn, and never has a fenced broker as leader.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.metadata.image.cluster import Broker
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId

Below = Callable[[int], int]
Item = TypeVar("Item")


class Placement:
    """Places one partition after the other on the same brokers."""

    def __init__(self, brokers: Iterable[Broker], below: Below) -> None:
        usable = [broker for broker in brokers if not broker.in_controlled_shutdown]
        unfenced = sum(not broker.is_fenced for broker in usable)
        self._usable = len(usable)
        self._stripes = _Stripes(usable, unfenced, below) if unfenced else None

    def place(self, partitions: int, replication_factor: int) -> list[tuple[NodeId, ...]]:
        """The replicas of each new partition, the preferred leader first."""
        if replication_factor <= 0:
            raise _refusal(
                f"Invalid replication factor {replication_factor}: "
                "the replication factor must be positive."
            )
        stripes = self._stripes
        if stripes is None:
            raise _refusal("All brokers are currently fenced.")
        if replication_factor > self._usable:
            raise _refusal(
                f"The target replication factor of {replication_factor} cannot be reached because "
                f"only {self._usable} broker(s) are registered or some brokers have all their log "
                "directories cordoned."
            )
        return [stripes.next_partition(replication_factor) for _ in range(partitions)]


def _refusal(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)


class _Ring:
    """Brokers in turn, starting one position later in each round."""

    def __init__(self, brokers: list[NodeId], below: Below) -> None:
        self._brokers = sorted(brokers)
        self._start = below(len(brokers)) if brokers else 0
        self._taken = 0
        self._round = 0

    def next(self, round_number: int) -> NodeId | None:
        size = len(self._brokers)
        if self._round != round_number and size:
            self._round, self._taken = round_number, 0
            self._start = (self._start + 1) % size
        if self._taken >= size:
            return None
        broker = self._brokers[(self._taken + self._start) % size]
        self._taken += 1
        return broker

    def shuffle(self, below: Below) -> None:
        _shuffle(self._brokers, below)


class _Rack:
    def __init__(self, brokers: list[Broker], below: Below) -> None:
        self.unfenced = _Ring([b.id for b in brokers if not b.is_fenced], below)
        self.fenced = _Ring([b.id for b in brokers if b.is_fenced], below)

    def next(self, round_number: int) -> NodeId | None:
        broker = self.unfenced.next(round_number)
        return self.fenced.next(round_number) if broker is None else broker


class _Stripes:
    def __init__(self, brokers: list[Broker], unfenced: int, below: Below) -> None:
        by_rack: dict[str | None, list[Broker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [_Rack(by_rack[name], below) for name in names]
        self._unfenced = unfenced
        self._below = below
        self._round = 0
        self._first = below(len(self._racks))

    def next_partition(self, replication_factor: int) -> tuple[NodeId, ...]:
        if self._round == self._unfenced > 1:
            # As many partitions as brokers are placed: reshuffle to avoid repeating the pattern.
            _shuffle(self._racks, self._below)
            for rack in self._racks:
                rack.unfenced.shuffle(self._below)
                rack.fenced.shuffle(self._below)
            self._round = 0
        self._first %= len(self._racks)
        leader_rack, leader = self._next_leader()
        replicas = [leader, *self._followers(leader_rack, replication_factor - 1)]
        self._round += 1
        self._first += 1
        return tuple(replicas)

    def _next_leader(self) -> tuple[int, NodeId]:
        for step in range(len(self._racks)):
            index = (self._first + step) % len(self._racks)
            broker = self._racks[index].unfenced.next(self._round)
            if broker is not None:
                return index, broker
        raise AssertionError("an unfenced broker was counted but is in no rack")

    def _followers(self, leader_rack: int, count: int) -> list[NodeId]:
        """One broker of each rack in turn; the leader's rack is skipped in the first round."""
        followers: list[NodeId] = []
        index, skipped = self._first, False
        while len(followers) < count:
            if index == leader_rack and not skipped:
                skipped = True
            else:
                broker = self._racks[index].next(self._round)
                if broker is not None:
                    followers.append(broker)
            index = (index + 1) % len(self._racks)
        return followers


def _shuffle(items: list[Item], below: Below) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = below(last + 1)
        items[last], items[other] = items[other], items[last]
