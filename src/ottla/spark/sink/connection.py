"""A blocking connection to one broker: requests go out in order, answers are taken when wanted.

Nothing here runs by itself: a task sends, computes its next batch while the broker works, and takes
the oldest answer when it has to. Answers are small, so that a broker never waits for us to read one
while we wait for it to read a request.
"""

import socket
from collections import deque
from typing import NamedTuple, TypeVar

from ottla import __version__
from ottla.client.connection import Request
from ottla.client.errors import (
    CannotConnect,
    ClientError,
    ConnectionLost,
    NotServed,
    RequestTimeout,
    UnknownHost,
    check,
)
from ottla.client.frames import LENGTH
from ottla.env.network import Address
from ottla.model.errors import ErrorCode, ProtocolError
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode_from, encode_into
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request_header
from ottla.protocol.messages import api_versions

Answer = TypeVar("Answer")

ANSWER_BYTES_MAX = 64 * 1024 * 1024  # The metadata of very many topics; the text of a stray peer.
CONNECT_S_MAX = 5.0
UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


class Sent(NamedTuple):
    """A request that is under way."""

    correlation_id: int
    api_key: int
    version: int


class SinkConnection:
    def __init__(self, address: Address, *, client_id: str, request_ms_max: int) -> None:
        """Connect and learn which APIs the broker serves."""
        self.address = address
        self._client_id = client_id
        self._request_ms_max = request_ms_max
        self._correlation_id = 0
        self._under_way: deque[Sent] = deque()
        self._failure: ClientError | None = None  # Nothing more is sent or received after it.
        self._ranges = {int(ApiKey.API_VERSIONS): api_versions.Request.VERSIONS}
        try:
            self._socket = socket.create_connection(address, timeout=CONNECT_S_MAX)
        except OSError as failure:
            kind = UnknownHost if isinstance(failure, socket.gaierror) else CannotConnect
            raise kind(f"cannot connect to {address}: {_reason(failure)}") from failure
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(request_ms_max / 1000)
        try:
            self._negotiate()
        except (ClientError, OSError) as failure:
            self.close()
            raise CannotConnect(f"cannot connect to {address}: {failure}") from failure

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def close(self) -> None:
        self._socket.close()

    def version_for(self, request: type[Request], version_max: int | None = None) -> int:
        """The newest version of an API that both sides speak."""
        served = self._ranges.get(request.API_KEY, range(0))
        newest = min(served.stop, request.VERSIONS.stop) - 1
        if version_max is not None:
            newest = min(newest, version_max)
        if not served or newest < max(served.start, request.VERSIONS.start):
            name = ApiKey(request.API_KEY).name
            raise NotServed(f"the broker at {self.address} does not serve {name}")
        return newest

    def send(self, request: Request, version: int) -> None:
        if self._failure is not None:
            raise self._failure
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        frame = bytearray(LENGTH.size) + encode_request_header(header)
        encode_into(request, version, frame)
        LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
        self._under_way.append(Sent(self._correlation_id, request.API_KEY, version))
        try:
            self._socket.sendall(frame)
        except OSError as failure:
            raise self._end(failure) from failure

    def receive(self, answer: type[Answer]) -> Answer:
        """The answer to the oldest request that is under way."""
        if self._failure is not None:
            raise self._failure
        sent = self._under_way.popleft()
        try:
            (size,) = LENGTH.unpack(self._read(LENGTH.size))
            if not 0 <= size <= ANSWER_BYTES_MAX:
                raise ProtocolError(f"an answer of {size} bytes announced; is this a broker?")
            frame = self._read(size)
            correlation_id, position = decode_response_header(frame, sent.api_key, sent.version)
            if correlation_id != sent.correlation_id:
                raise ProtocolError(f"answer {correlation_id} came, {sent.correlation_id} was due")
            version = sent.version
            is_negotiation = sent.api_key == ApiKey.API_VERSIONS
            if is_negotiation and frame[position : position + 2] == UNSUPPORTED_VERSION:
                version = 0  # A broker that does not know our version answers in the first one.
            return decode_from(answer, frame, position, version)[0]
        except (OSError, ProtocolError) as failure:
            raise self._end(failure) from failure

    def ask(
        self, request: Request, answer: type[Answer], *, version_max: int | None = None
    ) -> Answer:
        assert not self._under_way, "answers come in order"
        self.send(request, self.version_for(type(request), version_max))
        return self.receive(answer)

    def _negotiate(self) -> None:
        """Ask in our newest version; a broker that is older says what it speaks (KIP-511)."""
        request = api_versions.Request("ottla", __version__)
        answer = self.ask(request, api_versions.Response)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            newest = {item.api_key: item.max_version for item in answer.api_keys}
            version = min(newest.get(request.API_KEY, 0), request.VERSIONS.stop - 1)
            answer = self.ask(request, api_versions.Response, version_max=version)
        check(answer.error_code, about=str(self.address))
        self._ranges = {
            item.api_key: range(item.min_version, item.max_version + 1) for item in answer.api_keys
        }

    def _read(self, size: int) -> memoryview:
        data = memoryview(bytearray(size))
        filled = 0
        while filled < size:
            count = self._socket.recv_into(data[filled:])
            if not count:
                raise ConnectionResetError("closed by the broker")
            filled += count
        return data

    def _end(self, failure: OSError | ProtocolError) -> ClientError:
        """Close it; gives back what is told to whoever still uses it."""
        self.close()
        if isinstance(failure, ProtocolError):
            sentence = f"{self.address} sent what cannot be read: {failure}"
            self._failure = ConnectionLost(sentence)
        elif isinstance(failure, TimeoutError):
            sentence = f"{self.address} gave no answer within {self._request_ms_max} ms"
            self._failure = RequestTimeout(sentence)
        else:
            sentence = f"the connection to {self.address} was lost: {_reason(failure)}"
            self._failure = ConnectionLost(sentence)
        return self._failure


def _reason(failure: OSError) -> str:
    if isinstance(failure, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(failure, TimeoutError):
        return "no answer in time"
    return (failure.strerror or str(failure)).lower()
