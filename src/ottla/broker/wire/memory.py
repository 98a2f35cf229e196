"""Where requests are received: one buffer for all small ones, borrowed ones for the large.

A connection owns memory only while a frame is incomplete, and all of it together is bounded by
`queued.max.request.bytes`. Batches stay where they were received until the turn's flush has
written them: the next bytes go behind them, and when there is no room, the flush comes early.
Borrowed buffers are kept for the next large frame, since pages that were touched before cost a
third of fresh ones.
"""

from collections.abc import Callable
from mmap import mmap
from typing import Protocol

READ_BYTES_MAX = 256 << 10  # What one read may bring.
# Behind 256 KiB the flush comes early: what was just received is written while it is in the CPU's
# cache, and the next bytes are received where it was. Less would make more and smaller writes.
SHARED_BYTES = READ_BYTES_MAX + (256 << 10)
LARGE_BYTES = 128 << 10  # A frame beyond this is received into a buffer of its own.
FREE_BYTES = 1 << 10  # What any connection may keep without being counted.
IDLE_BYTES_MAX = 16 << 20  # What is kept for later while nobody uses it.


class Holder(Protocol):
    """A connection that keeps bytes of requests."""

    def memory_is_free(self) -> None:
        """It may read again."""

    def close(self) -> None: ...


class Waiting:
    """A request, on bytes of its own, that waits for work and not for memory."""

    def memory_is_free(self) -> None:
        """It never waits for memory."""

    def close(self) -> None:
        """It ends by itself."""


class RequestMemory:
    def __init__(self, bytes_max: int) -> None:
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self.place = 0  # Behind what this turn has received so far.
        self.flush: Callable[[], None] = self.flushed  # Called when there is no room left.
        self.used_bytes = 0
        self._bytes_max = bytes_max if bytes_max >= 0 else 1 << 62
        self._held: dict[Holder, int] = {}  # The oldest first.
        self._waiting: dict[Holder, None] = {}
        self._progressed: set[Holder] = set()
        self._until_flushed: list[tuple[mmap, int]] = []
        self._idle: dict[int, list[mmap]] = {}
        self._idle_bytes = 0

    @property
    def is_exhausted(self) -> bool:
        return self.used_bytes > self._bytes_max

    def borrow(self, size: int) -> mmap:
        """A buffer of at least `size` bytes: fresh pages cost nothing until they are written."""
        rounded = 1 << (size - 1).bit_length()
        idle = self._idle.get(rounded)
        if idle:
            self._idle_bytes -= rounded
            return idle.pop()
        return mmap(-1, rounded)

    def give_back(self, buffer: mmap) -> None:
        size = len(buffer)
        if self._idle_bytes + size <= IDLE_BYTES_MAX:
            self._idle_bytes += size
            self._idle.setdefault(size, []).append(buffer)

    def hold(self, holder: Holder, count: int) -> bool:
        """Count bytes that have arrived. False if it has to wait for `memory_is_free`."""
        self.used_bytes += count
        self._held[holder] = self._held.get(holder, 0) + count
        self._progressed.add(holder)
        # Someone must be able to finish, or all would wait for each other.
        return self.used_bytes <= self._bytes_max or next(iter(self._held)) is holder

    def wait(self, holder: Holder) -> None:
        self._waiting[holder] = None

    def release(self, holder: Holder) -> None:
        """It holds nothing any more. Those who wait are told at the end of the turn."""
        self.used_bytes -= self._held.pop(holder, 0)
        self._waiting.pop(holder, None)
        self._progressed.discard(holder)

    def release_when_flushed(self, holder: Holder, buffer: mmap) -> None:
        """Batches inside it are staged: their bytes are needed until the turn's flush."""
        self._until_flushed.append((buffer, self._held.pop(holder, 0)))
        self._progressed.discard(holder)

    def flushed(self) -> None:
        self.place = 0
        if self._until_flushed:
            buffers, self._until_flushed = self._until_flushed, []
            for buffer, count in buffers:
                self.used_bytes -= count
                self.give_back(buffer)
        if self._waiting:
            self._wake()

    def close_stalled(self) -> None:
        """While others wait, close whoever has sent nothing since the last call."""
        if self._waiting:
            for holder in list(self._held):
                if holder not in self._progressed and holder not in self._waiting:
                    holder.close()
            self._wake()
        self._progressed.clear()

    def _wake(self) -> None:
        # Each is woken once a call: it may find too little room and wait again.
        for holder in list(self._waiting):
            if self.is_exhausted and next(iter(self._held), holder) is not holder:
                continue
            if holder in self._waiting:
                del self._waiting[holder]
                holder.memory_is_free()
