"""Which leader epoch wrote which offsets: Kafka's leader-epoch cache (KIP-101, 279, 320).

In memory, with a mark that says when the checkpoint file is behind. After a crash the epochs past
the recovery point are found again in the batches, so the file may be written late, but before the
recovery point moves past what it would have said.
"""

from bisect import bisect_right

from ottla.model.types import Offset
from ottla.storage.checkpoint import EpochEntry

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    __slots__ = ("_epochs", "_starts", "is_dirty", "latest")

    def __init__(self, entries: list[EpochEntry] | None = None) -> None:
        self._epochs: list[int] = []
        self._starts: list[Offset] = []
        self.latest = UNDEFINED_EPOCH
        for epoch, start_offset in entries or ():
            self.assign(epoch, start_offset)
        self.is_dirty = False

    def assign(self, epoch: int, start_offset: Offset) -> None:
        """`epoch` begins at `start_offset`; entries that contradict this are dropped."""
        if epoch < 0:
            return
        if self._epochs and self.latest == epoch and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        self.is_dirty = True

    def found(self, epoch: int, offset: Offset) -> None:
        """A batch of `epoch` lies at `offset`, whatever the entries say: the file of them may be
        as of a later start of the log than its segments are.
        """
        if epoch < 0 or (epoch == self.latest and offset >= self._starts[-1]):
            return
        place = bisect_right(self._starts, offset)
        if place and self._epochs[place - 1] >= epoch:
            return
        if place == len(self._epochs) or self._epochs[place] < epoch:
            self.assign(epoch, offset)
            return
        is_known = self._epochs[place] == epoch
        self._starts[place : place + is_known] = [offset]
        self._epochs[place : place + is_known] = [epoch]
        self.is_dirty = True

    def end_offset_for(self, epoch: int, log_end: Offset) -> tuple[int, Offset]:
        """The greatest epoch <= `epoch` and where it ended; (-1, -1) if nobody can tell."""
        if epoch < 0:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if higher == 0:
            return epoch, self._starts[0]
        return self._epochs[higher - 1], self._starts[higher]

    def epoch_of(self, offset: Offset) -> int:
        """The epoch that wrote `offset`, or -1."""
        entry = bisect_right(self._starts, offset)
        return self._epochs[entry - 1] if entry else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: Offset) -> None:
        """Forget the epochs that began at or past `end_offset`."""
        while self._starts and self._starts[-1] >= end_offset:
            self._starts.pop()
            self._epochs.pop()
            self.is_dirty = True
        self.latest = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH

    def truncate_from_start(self, start_offset: Offset) -> None:
        """Forget what was before `start_offset`; the epoch in force there now begins there."""
        covered = bisect_right(self._starts, start_offset)
        if covered == 0 or (covered == 1 and self._starts[0] == start_offset):
            return
        self._starts[:covered] = [start_offset]
        self._epochs[:covered] = [self._epochs[covered - 1]]
        self.is_dirty = True

    def clear(self) -> None:
        self.is_dirty = self.is_dirty or bool(self._epochs)
        self._epochs.clear()
        self._starts.clear()
        self.latest = UNDEFINED_EPOCH

    def entries(self) -> list[EpochEntry]:
        return list(zip(self._epochs, self._starts, strict=True))
