"""A log as a chain: each batch has a mark of itself and of all that lies before it.

Two logs that have the same batch at the same place and the same mark there are alike up to it.
Only what is new is read; a log that was cut and has grown again is noticed by its last batch.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ottla.model.types import Offset
from ottla.records.batch import Batch

Batches = Callable[[Offset, Offset], Iterator[Batch]]
NOTHING = 0


class Link(NamedTuple):
    last_offset: Offset
    leader_epoch: int
    mark: int
    batch: tuple[int, int, int]  # Producer, its epoch, sequence.


class Chain:
    def __init__(self, start: Offset = 0, mark: int = NOTHING) -> None:
        self.start = start
        self.links: list[Link] = []
        self._first_mark = mark

    @property
    def end(self) -> Offset:
        return self.links[-1].last_offset + 1 if self.links else self.start

    def cut(self, end: Offset) -> None:
        while self.links and self.links[-1].last_offset >= end:
            self.links.pop()

    def follow(self, end: Offset, batches: Batches) -> list[Link]:
        """Read on up to `end`, where the log ends now; what is new."""
        self.cut(end)
        while self.links and not self._is_still_there(end, batches):
            self.links.pop()
        first = len(self.links)
        if end > self.end:
            for batch in batches(self.end, end):
                self._add(batch)
        return self.links[first:]

    def mark_at(self, offset: Offset) -> int | None:
        """The mark of the batch that ends at `offset`."""
        for link in reversed(self.links):
            if link.last_offset == offset:
                return link.mark
            if link.last_offset < offset:
                break
        return None

    def _is_still_there(self, end: Offset, batches: Batches) -> bool:
        last = self.links[-1]
        before = self.links[-2].mark if len(self.links) > 1 else self._first_mark
        batch = next(batches(last.last_offset, end), None)
        return batch is not None and _mark(before, batch) == last.mark

    def _add(self, batch: Batch) -> None:
        mark = _mark(self.links[-1].mark if self.links else self._first_mark, batch)
        who = (batch.producer_id, batch.producer_epoch, batch.base_sequence)
        self.links.append(Link(batch.last_offset, batch.leader_epoch, mark, who))


def _mark(before: int, batch: Batch) -> int:
    return hash((before, batch.base_offset, batch.last_offset, batch.leader_epoch, batch.crc))
