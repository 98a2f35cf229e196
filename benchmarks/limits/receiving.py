"""A loop that only receives batches, checks their CRC and writes them to a file."""

import os
import select
import socket
import sys
from pathlib import Path
from struct import Struct

from crc32c import crc32c

from benchmarks.limits.polling import serve
from benchmarks.limits.requests import records_position

_SIZE = Struct(">i")
_CORRELATION = Struct(">8xi")
_REPLY = Struct(">ii")
_CRC = Struct(">I")
_CRC_POSITION, _CRC_STARTS = 17, 21
_TAGS_BYTES = 3  # Behind the records: the ends of three structs.
BUFFER_BYTES = 2 << 20


class Receiving:
    """Reads frame by frame into a buffer of its own, so that a large one is never moved."""

    def __init__(self, accepted: socket.socket, _poller: select.epoll) -> None:
        self._socket = accepted
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._filled = 0
        self._records_at = 0

    def readable(self) -> bool:
        buffer, filled = self._buffer, self._filled
        wanted = BUFFER_BYTES
        if filled >= 4:
            wanted = 4 + _SIZE.unpack_from(buffer)[0]
        try:
            count = self._socket.recv_into(buffer[filled:wanted])
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not count:
            os.ftruncate(_file, 0)
            return False
        self._take(filled + count)
        return True

    def writable(self) -> None:
        raise AssertionError("replies are smaller than any socket buffer")

    def _take(self, end: int) -> None:
        buffer, position, replies, batches = self._buffer, 0, [], []
        while end - position >= 4:
            frame_end = position + 4 + _SIZE.unpack_from(buffer, position)[0]
            if frame_end > end:
                break
            # All requests of a connection are alike, so the first one tells where records begin.
            self._records_at = self._records_at or records_position(buffer)
            batch = buffer[position + self._records_at : frame_end - _TAGS_BYTES]
            stored = _CRC.unpack_from(batch, _CRC_POSITION)[0]
            assert crc32c(batch[_CRC_STARTS:]) == stored, "the load generator sends whole batches"
            batches.append(batch)
            replies.append(_REPLY.pack(4, _CORRELATION.unpack_from(buffer, position)[0]))
            position = frame_end
        if batches:
            os.writev(_file, batches)
            self._socket.send(b"".join(replies))
        if position:
            buffer[: end - position] = buffer[position:end]
        self._filled = end - position


if __name__ == "__main__":
    _file = os.open(Path(sys.argv[2]), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    serve(int(sys.argv[1]), Receiving)
