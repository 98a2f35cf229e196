"""Cuts the bytes of one connection into frames: a length, then as many bytes.

Small frames are cut from one reused buffer; a large one is received straight into memory of its
own, so that a fetch of megabytes is not copied. No frame is larger than `frame_bytes_max`.
"""

from struct import Struct

from ottla.model.errors import ProtocolError

SCRATCH_BYTES = 64 * 1024
LENGTH = Struct(">i")


class Frames:
    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._scratch = bytearray(SCRATCH_BYTES)
        self._kept = 0  # How much of the scratch holds the start of a frame.
        self._large: bytearray | None = None  # The frame that is received in place,
        self._filled = 0  # and how much of it is there.

    def buffer(self) -> memoryview:
        """Where the next bytes go."""
        if self._large is not None:
            return memoryview(self._large)[self._filled :]
        return memoryview(self._scratch)[self._kept :]

    def received(self, count: int) -> list[memoryview]:
        """`count` bytes came into `buffer()`; the frames that they complete."""
        if self._large is not None:
            self._filled += count
            if self._filled < len(self._large):
                return []
            frame, self._large = memoryview(self._large), None
            return [frame]
        return self._cut(self._kept + count)

    def _cut(self, end: int) -> list[memoryview]:
        frames: list[memoryview] = []
        position = 0
        while end - position >= LENGTH.size:
            (size,) = LENGTH.unpack_from(self._scratch, position)
            if not 0 <= size <= self._frame_bytes_max:
                raise ProtocolError(f"a frame of {size} bytes announced; is this a Kafka broker?")
            start = position + LENGTH.size
            if start + size > end:
                if size + LENGTH.size > SCRATCH_BYTES:
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
        self._large = bytearray(size)
        self._filled = end - start
        self._large[: self._filled] = self._scratch[start:end]
        self._kept = 0
