"""Splits the bytes of one connection into frames: a length, then as many bytes.

Small frames are copied out of one reused buffer; a large one is received straight into a buffer of
its own, so that a fetch of megabytes is not copied. No frame is larger than `frame_bytes_max`.
"""

from struct import Struct

from ottla.model.errors import ProtocolError

SCRATCH_BYTES = 64 * 1024
LENGTH = Struct(">i")


class BadFrameSize(ProtocolError):
    def __init__(self, size: int) -> None:
        super().__init__(f"a frame of {size} bytes announced; is this a Kafka broker?")
        self.size = size


class Frames:
    def __init__(self, frame_bytes_max: int, *, reuses_buffer: bool = False) -> None:
        """With `reuses_buffer`, lengths are received alone and frames of any size in place, each
        of them over the one before."""
        self._frame_bytes_max = frame_bytes_max
        self._scratch = bytearray(LENGTH.size if reuses_buffer else SCRATCH_BYTES)
        self._kept = 0  # How much of the scratch holds the start of a frame.
        self._large: memoryview | None = None  # The frame that is received in place,
        self._filled = 0  # and how much of it is there.
        self._reused = bytearray(SCRATCH_BYTES) if reuses_buffer else None

    def buffer(self) -> memoryview:
        """Where the next bytes go."""
        if self._large is not None:
            return self._large[self._filled :]
        return memoryview(self._scratch)[self._kept :]

    def received(self, count: int) -> list[memoryview]:
        """`count` bytes came into `buffer()`; the frames that they complete."""
        if self._large is not None:
            self._filled += count
            if self._filled < len(self._large):
                return []
            frame, self._large = self._large, None
            return [frame]
        return self._cut(self._kept + count)

    def _cut(self, end: int) -> list[memoryview]:
        frames: list[memoryview] = []
        position = 0
        while end - position >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._scratch, position)
            if not 0 <= size <= self._frame_bytes_max:
                raise BadFrameSize(size)
            start = position + LENGTH.size
            if start + size > end:
                if size + LENGTH.size > len(self._scratch):
                    self._begin_large(size, start, end)
                    return frames
                break
            frames.append(memoryview(bytes(memoryview(self._scratch)[start : start + size])))
            position = start + size
        self._kept = end - position
        if position:
            self._scratch[: self._kept] = self._scratch[position:end]
        return frames

    def _begin_large(self, size: int, start: int, end: int) -> None:
        self._large = self._allocate(size)
        self._filled = end - start
        self._large[: self._filled] = memoryview(self._scratch)[start:end]
        self._kept = 0

    def _allocate(self, size: int) -> memoryview:
        if self._reused is None:
            return memoryview(bytearray(size))
        if size > len(self._reused):
            self._reused = bytearray(size + size // 8)
        return memoryview(self._reused)[:size]
