"""What the clients of a run did and saw, and what that must never contradict.

Every value is unique, so that a record read says which send it came from. A send that failed or
timed out may have been written or not; one that was acknowledged was written, at the offset that
the broker said. How often a value may appear depends on what its producer asked for.
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from ottla.model.types import Offset, TopicPartition

UNKNOWN_OFFSET: Final = -1  # The broker did not say where: acks 0, or a duplicate of long ago.


class Violation(Exception):
    """Something happened that must not; the text says what."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a producer may rely on."""

    name: str
    is_kept: bool  # What was acknowledged is there,
    is_once: bool  # no value is there twice,
    is_ordered: bool  # and acknowledged values lie in the order of their sending.

    @property
    def acks(self) -> int:
        return {"acks=0": 0, "acks=1": 1}.get(self.name, -1)


IDEMPOTENT: Final = Guarantee("idempotent", is_kept=True, is_once=True, is_ordered=True)
PIPELINED: Final = Guarantee("pipelined", is_kept=True, is_once=True, is_ordered=True)
ACKS_ALL: Final = Guarantee("acks=all", is_kept=True, is_once=False, is_ordered=False)
# A single broker keeps what it has appended; a leader may be replaced by one that lacks it.
ACKS_ONE: Final = Guarantee("acks=1", is_kept=True, is_once=False, is_ordered=False)
ACKS_LEADER: Final = Guarantee("acks=1", is_kept=False, is_once=False, is_ordered=False)
ACKS_NONE: Final = Guarantee("acks=0", is_kept=False, is_once=True, is_ordered=False)


@dataclass(slots=True)
class Sent:
    """One value: who sent it when, and what became of it as far as its sender knows."""

    producer: str
    number: int
    guarantee: Guarantee
    topic_partition: TopicPartition
    is_acknowledged: bool = False
    offset: Offset = UNKNOWN_OFFSET


@dataclass(slots=True)
class Trim:
    """How much of a partition's beginning may be gone, and how much must be."""

    asked: Offset = 0  # Someone wants everything below to be deleted,
    done: Offset = 0  # and was told that it is.
    retained: Offset = 0  # The broker itself has let go of everything below.

    @property
    def start_max(self) -> Offset:
        return max(self.asked, self.retained)


@dataclass(frozen=True, slots=True)
class End:
    """An answer to ListOffsets (LATEST), and when it was asked for and came."""

    offset: Offset
    epoch: int
    began: float
    ended: float


@dataclass(slots=True)
class History:
    sent: dict[bytes, Sent] = field(default_factory=dict)
    # What some consumer saw where: it must stay so for everyone.
    seen: dict[TopicPartition, dict[Offset, bytes]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    reads: int = 0
    answers: int = 0  # That said that a record is written.
    trims: dict[TopicPartition, "Trim"] = field(default_factory=lambda: defaultdict(Trim))
    # The highest offset that any leader has called committed: clients get nothing beyond it.
    committed_end: Callable[[TopicPartition], Offset] = lambda _: sys.maxsize
    ends: dict[TopicPartition, list["End"]] = field(default_factory=lambda: defaultdict(list))
    # Partitions with an unclean election: records may be lost, and offsets be given to others.
    uncertain: set[TopicPartition] = field(default_factory=set)

    def sending(self, value: bytes, sent: Sent) -> None:
        assert value not in self.sent, "values are unique"
        self.sent[value] = sent

    def acknowledged(self, value: bytes, offset: Offset) -> None:
        self.answers += 1
        sent = self.sent.get(value)
        if sent is not None:  # Else its topic has been deleted meanwhile.
            sent.is_acknowledged, sent.offset = True, offset

    def read(
        self, topic_partition: TopicPartition, offset: Offset, value: bytes, reader: str = ""
    ) -> None:
        """A consumer got this record; `reader` is its name, if it reads one after the other."""
        del reader
        self.reads += 1
        self._check_committed(topic_partition, offset + 1)
        if topic_partition not in self.uncertain:
            before = self.seen[topic_partition].setdefault(offset, value)
            if before != value:
                raise Violation(
                    f"{topic_partition} at {offset} was {before!r} and is now {value!r}"
                )
        sent = self.sent.get(value)
        if sent is None:
            raise Violation(f"{topic_partition} at {offset} holds {value!r}, which nobody sent")
        if sent.topic_partition != topic_partition:
            raise Violation(f"{value!r} was sent to {sent.topic_partition}, not {topic_partition}")

    def latest(self, place: TopicPartition, end: "End") -> None:
        """A client asked for the end of the log: it does not go back from epoch to epoch.

        A deposed leader that does not know of it may answer with an older epoch, and less.
        """
        self._check_committed(place, end.offset)
        if place in self.uncertain:
            return
        for before in self.ends[place]:
            is_before = before.epoch <= end.epoch and before.ended <= end.began
            if is_before and before.offset > end.offset:
                raise Violation(
                    f"I9: {place} ended at {before.offset} in epoch {before.epoch}, and later at "
                    f"{end.offset} in epoch {end.epoch}"
                )
        self.ends[place].append(end)

    def _check_committed(self, place: TopicPartition, end: Offset) -> None:
        if end > self.committed_end(place):
            raise Violation(
                f"I8: a client sees {place} up to {end}, committed up to "
                f"{self.committed_end(place)}"
            )

    def elected_uncleanly(self, place: TopicPartition) -> None:
        """A deposed leader that does not know of it may go on to give answers that are lost."""
        self.uncertain.add(place)
        self.seen.pop(place, None)
        self.ends.pop(place, None)

    def forget(self, topic: str) -> None:
        """The topic was deleted: nothing is expected of it any more."""
        self.sent = {v: s for v, s in self.sent.items() if s.topic_partition.topic != topic}
        for topic_partition in [tp for tp in self.seen if tp.topic == topic]:
            del self.seen[topic_partition]

    def forget_unsynced(self) -> None:
        """Power was lost: what was acknowledged only by the page cache may be gone, seen or not."""
        for sent in self.sent.values():
            sent.is_acknowledged, sent.offset = False, UNKNOWN_OFFSET
        self.seen.clear()
        self.ends.clear()

    @property
    def acknowledgements(self) -> int:
        return sum(sent.is_acknowledged for sent in self.sent.values())


def check_final(history: History, logs: dict[TopicPartition, list[tuple[Offset, bytes]]]) -> None:
    """Compare all that is in the logs at the end with all that was ever done."""
    places: dict[bytes, list[tuple[TopicPartition, Offset]]] = defaultdict(list)
    for topic_partition, records in logs.items():
        _check_dense(topic_partition, [offset for offset, _ in records])
        for offset, value in records:
            history.read(topic_partition, offset, value)
            places[value].append((topic_partition, offset))
    for value, sent in history.sent.items():
        if sent.topic_partition in history.uncertain:
            continue
        offsets = [offset for _, offset in places[value]]
        _check_value(value, sent, offsets, history.trims[sent.topic_partition].start_max)
    for topic_partition, seen in history.seen.items():
        present = {offset for offset, _ in logs.get(topic_partition, ())}
        start_max = history.trims[topic_partition].start_max
        for offset in seen:
            if offset not in present and offset >= start_max:
                raise Violation(f"{topic_partition} at {offset} was read once and is gone")
    _check_order(history)


def check_trimmed(history: History, logs: dict[TopicPartition, list[tuple[Offset, bytes]]]) -> None:
    """Records whose deletion was confirmed are not there again."""
    for place, records in logs.items():
        done = history.trims[place].done
        if place in history.uncertain:
            continue
        if records and records[0][0] < done:
            raise Violation(f"{place}: deleted up to {done}, and begins at {records[0][0]}")


def _check_dense(topic_partition: TopicPartition, offsets: list[Offset]) -> None:
    for before, after in pairwise(offsets):
        if after != before + 1:
            raise Violation(f"{topic_partition} has {after} right after {before}")


def _check_value(value: bytes, sent: Sent, offsets: list[Offset], start_max: Offset) -> None:
    # Or it may be: nobody was told where it lies.
    is_trimmed = start_max > 0 and sent.offset < start_max
    about = f"{value!r} ({sent.guarantee.name}) in {sent.topic_partition}"
    if sent.is_acknowledged and sent.guarantee.is_kept and not is_trimmed:
        if not offsets:
            raise Violation(f"{about} was acknowledged at {sent.offset} and is lost")
        if sent.offset != UNKNOWN_OFFSET and sent.offset not in offsets:
            raise Violation(f"{about} was acknowledged at {sent.offset} and lies at {offsets}")
    if sent.guarantee.is_once and len(offsets) > 1:
        raise Violation(f"{about} is there {len(offsets)} times: at {offsets}")


def _check_order(history: History) -> None:
    last: dict[tuple[str, TopicPartition], Sent] = {}
    for sent in history.sent.values():
        if not sent.guarantee.is_ordered or sent.offset == UNKNOWN_OFFSET:
            continue
        if sent.topic_partition in history.uncertain:
            continue
        key = (sent.producer, sent.topic_partition)
        before = last.get(key)
        if before is not None and before.offset >= sent.offset:
            raise Violation(
                f"{sent.producer} sent {before.number} before {sent.number} to "
                f"{sent.topic_partition}, but they lie at {before.offset} and {sent.offset}"
            )
        last[key] = sent
