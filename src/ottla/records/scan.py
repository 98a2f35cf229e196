"""Work on the records of one batch, with a cost that is bounded before it starts.

A batch of a hundred bytes may hold, or claim, millions of records. A `BatchScan` runs inline only
if a `ScanBudget`, the allowance of a loop turn, covers its estimated cost; else a worker runs its
`steps`. Both ways do the same work. Threads and tasks belong to the caller.
"""

from collections.abc import Iterator
from typing import Final

from ottla.records.batch import Batch
from ottla.records.record import BadRecords, Oversized, decompress_body

# Pessimistic estimates: a record parsed in Python, and bytes of the slowest codec (gzip).
RECORD_US: Final = 4
PLAIN_BYTES_PER_US: Final = 4096
DECOMPRESSED_BYTES_PER_US: Final = 128
STEP_US: Final = 2000  # Worker time per step that a walk may find beyond the estimate.
PACKED_BYTES_PER_US: Final = 4  # Recompression with zstd at level 19.


class Larger(Exception):
    """The body decompresses to more than the bound of this attempt."""


class ScanBudget:
    """Remaining CPU time, in estimated microseconds."""

    __slots__ = ("left_us",)

    def __init__(self, us: int) -> None:
        self.left_us = us

    def take(self, us: int) -> bool:
        """Reserve `us`; False, without change, if there is not that much left."""
        if us > self.left_us:
            return False
        self.left_us -= us
        return True


class BatchScan:
    """Base class of a pass over all records of a batch; subclasses define walk and result."""

    def __init__(self, batch: Batch, bytes_max: int, bytes_per_us: int | None = None) -> None:
        """`bytes_max` bounds the decompressed body; `bytes_per_us` defaults to the speed of
        reading.
        """
        self.batch = batch
        self._bytes_max = bytes_max
        read_per_us = DECOMPRESSED_BYTES_PER_US if batch.codec else PLAIN_BYTES_PER_US
        self._bytes_per_us = read_per_us if bytes_per_us is None else bytes_per_us
        self._more_us = 0  # Cost that an attempt found beyond the estimate.

    def run_within(self, budget: ScanBudget) -> bool:
        """Do all of the work if `budget` covers it; False if it is left to `steps`."""
        try:
            return self._run_within(budget)
        except BadRecords as failure:
            self._failed(failure)
        return True

    @property
    def cost_us(self) -> int:
        """Estimated cost; includes decompression only after an attempt has measured it."""
        return self._header_us + self._more_us

    @property
    def _header_us(self) -> int:
        """Cost estimated from the header and the size of the batch."""
        batch = self.batch
        return 1 + len(batch.data) // self._bytes_per_us + max(batch.count, 0) * RECORD_US

    def steps(self, bytes_max: int | None = None) -> Iterator[None]:
        """The work in slices of a few milliseconds, except single calls of the codec's library.

        Raises Larger, before any work, if the body decompresses to more than `bytes_max`.
        """
        cap = self._bytes_max if bytes_max is None else min(bytes_max, self._bytes_max)
        try:
            try:
                data = decompress_body(self.batch, cap)
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
            data = decompress_body(self.batch, bytes_max)
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
        """Record that an attempt used up its allowance, so the next estimate is higher."""
        self._more_us = max(self._more_us, allowed_us + 1)
        budget.left_us = 0
        return False

    def _walk(self, data: bytes) -> Iterator[int]:
        """Walk the decompressed body from its start, in steps of about a millisecond.

        Yields the cost of the step beyond one RECORD_US per record. A walk may be abandoned at any
        step; before its last step it changes nothing.
        """
        raise NotImplementedError

    def _failed(self, failure: BadRecords) -> None:
        """The batch is malformed."""
        raise NotImplementedError
