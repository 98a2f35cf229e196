"""Work on the records of one batch, at a cost that is bounded before the work begins.

A batch of a hundred bytes may hold, or claim, millions of records. A `BatchScan` is done at once
only if a `ScanBudget`, the allowance of a loop turn, covers its estimated cost; else its `steps`
are for a worker. Both ways do the same work. Threads and tasks belong to the caller.
"""

from collections.abc import Iterator
from typing import Final

from ottla.records.batch import Batch
from ottla.records.record import BadRecords, Oversized, unfold

# Estimates, on the slow side: a record walked in Python, and bytes of the slowest codec (gzip).
RECORD_US: Final = 4
PLAIN_BYTES_PER_US: Final = 4096
UNFOLDED_BYTES_PER_US: Final = 128
STEP_US: Final = 2000  # Of a worker, in what a walk found beyond the estimate.
PACKED_BYTES_PER_US: Final = 4  # Recompression with zstd at level 19.


class Larger(Exception):
    """A body unfolds to more than it was tried with."""


class ScanBudget:
    """CPU time that may still be spent, in estimated microseconds."""

    __slots__ = ("left_us",)

    def __init__(self, us: int) -> None:
        self.left_us = us

    def take(self, us: int) -> bool:
        """False, and nothing is taken, if there is not that much left."""
        if us > self.left_us:
            return False
        self.left_us -= us
        return True


class BatchScan:
    """Base of what goes through all records of a batch: a subclass has the walk and the result."""

    def __init__(self, batch: Batch, bytes_max: int, bytes_per_us: int | None = None) -> None:
        """`bytes_max` caps the unfolded body; `bytes_per_us` defaults to that of reading it."""
        self.batch = batch
        self._bytes_max = bytes_max
        read_per_us = UNFOLDED_BYTES_PER_US if batch.codec else PLAIN_BYTES_PER_US
        self._bytes_per_us = read_per_us if bytes_per_us is None else bytes_per_us
        self._more_us = 0  # What an attempt found beyond the estimate.

    def run_within(self, budget: ScanBudget) -> bool:
        """Do all of the work if `budget` covers it; False if it is left to `steps`."""
        try:
            return self._run_within(budget)
        except BadRecords as failure:
            self._failed(failure)
        return True

    @property
    def cost_us(self) -> int:
        """The estimate, without what the batch unfolds to, unless an attempt has found it."""
        return self._header_us + self._more_us

    @property
    def _header_us(self) -> int:
        """What the header and the size of the batch tell."""
        batch = self.batch
        return 1 + len(batch.data) // self._bytes_per_us + max(batch.count, 0) * RECORD_US

    def steps(self, bytes_max: int | None = None) -> Iterator[None]:
        """The work in slices of a few milliseconds, but for the calls of the codec's library.

        Raises Larger, before anything is done, if the body unfolds to more than `bytes_max`.
        """
        cap = self._bytes_max if bytes_max is None else min(bytes_max, self._bytes_max)
        try:
            try:
                data = unfold(self.batch, cap)
            except Oversized:
                if cap < self._bytes_max:
                    raise Larger from None
                raise
            yield
            since_us = 0
            for us in self._walk(data):
                since_us += us
                if not us or since_us >= STEP_US:
                    yield
                    since_us = 0
        except BadRecords as failure:
            self._failed(failure)

    def _run_within(self, budget: ScanBudget) -> bool:
        if self.cost_us > budget.left_us:
            return False
        budget.take(self._header_us)
        allowed_us = budget.left_us
        bytes_max = min(self._bytes_max, allowed_us * self._bytes_per_us)
        try:
            data = unfold(self.batch, bytes_max)
        except Oversized:
            if bytes_max == self._bytes_max:
                raise
            return self._beyond(budget, allowed_us)
        budget.take(len(data) // self._bytes_per_us)
        for us in self._walk(data):
            if not budget.take(us):
                return self._beyond(budget, allowed_us)
        return True

    def _beyond(self, budget: ScanBudget, allowed_us: int) -> bool:
        """The attempt has taken all that was allowed: no other begins with as little."""
        self._more_us = max(self._more_us, allowed_us + 1)
        budget.left_us = 0
        return False

    def _walk(self, data: bytes) -> Iterator[int]:
        """Go through the unfolded body in steps of a millisecond or so, from its beginning.

        Yields what the next or the last step costs beyond one RECORD_US for each record. A walk
        may be given up at any step; until its last one it has changed nothing.
        """
        raise NotImplementedError

    def _failed(self, failure: BadRecords) -> None:
        """The batch does not hold what it should."""
        raise NotImplementedError
