"""The requests that clients sent to a broker, kept as their frames.

Frames are copied between socket and broker, so that the broker serves them as it always does. The
newest frames are kept, up to `FRAMES_MAX` frames and `BYTES_MAX` bytes.
"""

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from ottla.env.network import Channel, Peer
from ottla.model.errors import ProtocolError
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode
from ottla.protocol.header import decode_request_header

FRAMES_MAX: Final = 10_000
BYTES_MAX: Final = 16 << 20
SIZE_BYTES: Final = 4
# Client ids of the testing client and of brokers.
OWN_CLIENTS: Final = re.compile(
    r"ottla-testing|broker-\d+-fetcher|controller-channel|raft|death-watch"
)


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as its client sent it."""

    api: str  # Produce
    version: int
    client_id: str
    body: Any  # Fields have Kafka's names: acks, timeout_ms, topic_data ...


class RequestLog:
    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0

    def tap(self, accept: Callable[[Channel], Peer]) -> Callable[[Channel], Peer]:
        """Keep the requests of all connections that `accept` gets."""
        return lambda channel: TappedPeer(accept(channel), self)

    def add(self, frame: bytes) -> None:
        try:
            header, _ = decode_request_header(frame)
        except ProtocolError:
            return  # Not Kafka's protocol; the broker closes the connection.
        if OWN_CLIENTS.fullmatch(header.client_id):
            return
        self._frames.append(frame)
        self._bytes += len(frame)
        while len(self._frames) > FRAMES_MAX or self._bytes > BYTES_MAX:
            self._bytes -= len(self._frames.popleft())

    def frames(self, api_key: ApiKey) -> list[bytes]:
        """The kept frames of an API, the oldest first."""
        return [frame for frame in self._frames if int.from_bytes(frame[:2], "big") == api_key]


class TappedPeer:
    """Passes everything on to a peer, and each complete request to the log."""

    def __init__(self, peer: Peer, log: RequestLog) -> None:
        self._peer = peer
        self._log = log
        self._view = memoryview(b"")
        self._pending = bytearray()

    def buffer(self) -> memoryview:
        self._view = self._peer.buffer()
        return self._view

    def received(self, count: int) -> None:
        self._pending += self._view[:count]
        self._view = memoryview(b"")
        self._take_frames()
        self._peer.received(count)

    def sent(self) -> None:
        self._peer.sent()

    def closed(self) -> None:
        self._peer.closed()

    def _take_frames(self) -> None:
        pending, start = self._pending, 0
        while len(pending) - start >= SIZE_BYTES:
            end = start + SIZE_BYTES + int.from_bytes(pending[start : start + SIZE_BYTES], "big")
            if end > len(pending):
                break
            self._log.add(bytes(pending[start + SIZE_BYTES : end]))
            start = end
        del pending[:start]


def decode_sent(frame: bytes) -> SentRequest:
    """The request in a kept frame; its body is None if the version is unknown."""
    header, position = decode_request_header(frame)
    key = ApiKey(header.api_key)
    request = import_module(f"ottla.protocol.messages.{key.name.lower()}").Request
    known = header.api_version in request.VERSIONS
    body = decode(request, frame[position:], header.api_version) if known else None
    return SentRequest(_api_name(key), header.api_version, header.client_id, body)


def _api_name(key: ApiKey) -> str:
    return "".join(part.capitalize() for part in key.name.split("_"))
