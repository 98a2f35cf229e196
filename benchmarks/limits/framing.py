"""Bare framing on a bare epoll loop: a frame in, its correlation id out."""

import select
import socket
import sys
from struct import Struct

from benchmarks.limits.polling import serve

_SIZE = Struct(">i")
_CORRELATION = Struct(">4xi")  # After the size: api key, version, correlation id.
_REPLY = Struct(">ii")
_shared = memoryview(bytearray(1 << 20))


class Framing:
    def __init__(self, accepted: socket.socket, _poller: select.epoll) -> None:
        self._socket = accepted
        self._tail = b""

    def readable(self) -> bool:
        kept = len(self._tail)
        if kept:
            _shared[:kept] = self._tail
        try:
            count = self._socket.recv_into(_shared[kept:])
        except OSError:
            return False
        if not count:
            return False
        replies, position = frames(kept + count)
        self._tail = bytes(_shared[position : kept + count])
        if replies:
            self._socket.send(b"".join(replies))
        return True

    def writable(self) -> None:
        raise AssertionError("replies are smaller than any socket buffer")


def frames(end: int) -> tuple[list[bytes], int]:
    """A reply to each whole frame of the shared buffer, and where the rest begins."""
    replies, position = [], 0
    while end - position >= 4:
        frame_end = position + 4 + _SIZE.unpack_from(_shared, position)[0]
        if frame_end > end:
            break
        replies.append(_REPLY.pack(4, _CORRELATION.unpack_from(_shared, position + 4)[0]))
        position = frame_end
    return replies, position


if __name__ == "__main__":
    serve(int(sys.argv[1]), Framing)
