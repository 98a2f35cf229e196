"""Bare sendfile in a loop: answers a Fetch from one file of equal batches, without any lookup.

Arguments: port, file, bytes of a batch, records of a batch.
"""

import os
import select
import socket
import sys
from struct import Struct

from benchmarks.limits.polling import serve
from benchmarks.limits.requests import fetch_offset_position, topic_name

RESPONSE_BYTES = 1 << 20
_OFFSET = Struct(">q")
_CORRELATION = Struct(">8xi")


class Sending:
    def __init__(self, accepted: socket.socket, poller: select.epoll) -> None:
        self._socket = accepted
        self._poller = poller
        self._request = memoryview(bytearray(4096))
        self._position = self._left = 0
        self._offset_at = 0
        self._topic = b""

    def readable(self) -> bool:
        request = self._request
        try:
            count = self._socket.recv_into(request)
        except OSError:
            return False
        if not count:
            return False
        if not self._offset_at:
            self._offset_at = fetch_offset_position(request)
            self._topic = topic_name(request)
        offset = _OFFSET.unpack_from(request, self._offset_at)[0]
        self._position = offset // _batch_records * _batch_bytes
        self._left = min(RESPONSE_BYTES, _file_bytes - self._position)
        correlation_id = _CORRELATION.unpack_from(request)[0]
        start = response_start(correlation_id, self._topic, self._left)
        self._socket.send(start, socket.MSG_MORE)
        self._send()
        return True

    def writable(self) -> None:
        self._send()
        if not self._left:
            self._poller.modify(self._socket, select.EPOLLIN)

    def _send(self) -> None:
        try:
            while self._left:
                sent = os.sendfile(self._socket.fileno(), _file, self._position, self._left)
                self._position += sent
                self._left -= sent
            self._socket.send(b"\0\0\0")  # The ends of three structs.
        except BlockingIOError:
            self._poller.modify(self._socket, select.EPOLLIN | select.EPOLLOUT)


def response_start(correlation_id: int, topic: bytes, size: int) -> bytes:
    """A Fetch 12 response of one partition up to its records."""
    high_watermark = _file_bytes // _batch_bytes * _batch_records
    body = b"".join(
        (
            Struct(">ixihi").pack(correlation_id, 0, 0, 0),
            bytes((2, len(topic) + 1)) + topic + b"\2",
            Struct(">ihqqqbi").pack(0, 0, high_watermark, high_watermark, 0, 0, -1),
            uvarint(size + 1),
        )
    )
    return (len(body) + size + 3).to_bytes(4, "big") + body


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes((number,))


if __name__ == "__main__":
    _file = os.open(sys.argv[2], os.O_RDONLY)
    _file_bytes = os.fstat(_file).st_size
    _batch_bytes, _batch_records = int(sys.argv[3]), int(sys.argv[4])
    serve(int(sys.argv[1]), Sending)
