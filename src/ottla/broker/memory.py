"""Where requests are received: one buffer for all small ones, borrowed ones for the large.

A connection owns memory only while a frame is incomplete, and all of it together is bounded by
`queued.max.request.bytes`. Borrowed buffers are kept for the next large frame, since pages that
were touched before cost a third of fresh ones.
"""

from collections import deque
from collections.abc import Callable
from mmap import mmap

SHARED_BYTES = 256 << 10
LARGE_BYTES = 128 << 10  # A frame beyond this is received into a buffer of its own.
IDLE_BYTES_MAX = 16 << 20  # What is kept for later while nobody uses it.


class RequestMemory:
    def __init__(self, bytes_max: int) -> None:
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self.used_bytes = 0
        self._bytes_max = bytes_max
        self._idle: dict[int, list[mmap]] = {}
        self._idle_bytes = 0
        self._until_flushed: list[mmap] = []
        self._waiting: deque[Callable[[], None]] = deque()

    def borrow(self, size: int) -> mmap | None:
        """A buffer of at least `size` bytes, or None while too much is in use."""
        rounded = 1 << (size - 1).bit_length()
        # A single frame larger than all of the budget is still served, alone.
        if self.used_bytes and self.used_bytes + rounded > self._bytes_max:
            return None
        self.used_bytes += rounded
        idle = self._idle.get(rounded)
        if idle:
            self._idle_bytes -= rounded
            return idle.pop()
        return mmap(-1, rounded)

    def give_back(self, buffer: mmap) -> None:
        size = len(buffer)
        self.used_bytes -= size
        if self._idle_bytes + size <= IDLE_BYTES_MAX:
            self._idle_bytes += size
            self._idle.setdefault(size, []).append(buffer)
        while self._waiting and self.used_bytes < self._bytes_max:
            self._waiting.popleft()()

    def give_back_when_flushed(self, buffer: mmap) -> None:
        """Batches inside it are staged: their bytes are needed until the turn's flush."""
        self._until_flushed.append(buffer)

    def flushed(self) -> None:
        if self._until_flushed:
            buffers, self._until_flushed = self._until_flushed, []
            for buffer in buffers:
                self.give_back(buffer)

    def when_free(self, resume: Callable[[], None]) -> None:
        self._waiting.append(resume)
