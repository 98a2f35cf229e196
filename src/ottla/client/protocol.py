"""The Kafka protocol as a client speaks it on one connection, without I/O.

Requests become bytes, bytes become responses, in order. Version negotiation, correlation, the bound
on a response's size and the texts of failures are here; the drivers (`connection` over the network
seam, `blocking_connection` over a socket) only move bytes and wait.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from ottla import __version__
from ottla.client.errors import (
    ClientError,
    ConnectionLost,
    NotServed,
    RequestTimeout,
    ResponseTooLarge,
    check,
)
from ottla.client.frames import LENGTH, BadFrameSize, Frames
from ottla.env.network import Address
from ottla.model.errors import ErrorCode, ProtocolError
from ottla.model.types import Millis
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode_from, encode_into
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request_header
from ottla.protocol.messages import api_versions

FRAME_BYTES_MAX = 256 * 1024 * 1024  # Above any fetch; below what the text of a stray peer spells.
CORRELATION_ID_MAX = 2**31 - 1
UNSUPPORTED_VERSION = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
Answer = TypeVar("Answer")


class Request(Protocol):
    """A message that has an API key."""

    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[range]


class Exchange(NamedTuple):
    """A request of the handshake, the class of its response, and its version."""

    request: Request
    answer: type[Any]
    version: int


class Expected(NamedTuple):
    """A response that is due."""

    correlation_id: int
    api_key: int
    version: int
    answer: type[Any]


class ClientProtocol:
    def __init__(self, address: Address, client_id: str, *, reuses_buffer: bool = False) -> None:
        """With `reuses_buffer`, a response is valid only until the next bytes are received."""
        self.address = address
        self.api_versions = api_versions.Response()
        self.failure: ClientError | None = None  # The reason why the connection has ended.
        self._client_id = client_id
        self._ranges: dict[int, range] = {ApiKey.API_VERSIONS: api_versions.Request.VERSIONS}
        self._frames = Frames(FRAME_BYTES_MAX, reuses_buffer=reuses_buffer)
        self._expected: deque[Expected] = deque()
        self._correlation_id = 0

    @property
    def under_way(self) -> int:
        """The number of requests whose responses are due."""
        return len(self._expected)

    def handshake(self) -> Generator[Exchange, Any, None]:
        """Yields each request that opens a connection and takes its response.

        ApiVersions is sent in our newest version; an older broker answers with the versions that
        it serves, and is asked again (KIP-511).
        """
        hello = api_versions.Request("ottla", __version__)
        newest = hello.VERSIONS.stop - 1
        answer = yield Exchange(hello, api_versions.Response, newest)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            served = {item.api_key: item.max_version for item in answer.api_keys}
            version = min(served.get(hello.API_KEY, 0), newest)
            answer = yield Exchange(hello, api_versions.Response, version)
        check(answer.error_code, about=str(self.address))
        self.api_versions = answer
        self._ranges = {
            item.api_key: range(item.min_version, item.max_version + 1) for item in answer.api_keys
        }

    def version_for(self, request: type[Request], version_max: int | None = None) -> int:
        """The newest version of an API that both sides speak."""
        served = self._ranges.get(request.API_KEY, range(0))
        newest = min(served.stop, request.VERSIONS.stop) - 1
        if version_max is not None:
            newest = min(newest, version_max)
        if newest < max(served.start, request.VERSIONS.start) or not served:
            name = ApiKey(request.API_KEY).name
            raise NotServed(f"the broker at {self.address} does not serve {name}")
        return newest

    def encode(self, request: Request, answer: type[Any] | None, version: int) -> bytearray:
        """The frame of a request; None as `answer` means that the broker sends no response."""
        self._correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MAX
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        frame = bytearray(LENGTH.size) + encode_request_header(header)
        encode_into(request, version, frame)
        LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
        if answer is not None:
            self._expected.append(Expected(self._correlation_id, request.API_KEY, version, answer))
        return frame

    def buffer(self) -> memoryview:
        """Where the next bytes are to be received."""
        return self._frames.buffer()

    def received(self, count: int) -> Iterable[Any]:
        """The responses that `count` bytes in `buffer()` complete; ClientError ends the connection.

        Lazy: responses before malformed bytes are still given out.
        """
        try:
            frames = self._frames.received(count)
        except BadFrameSize as error:
            if error.size < 0 or not self.api_versions.api_keys:
                raise self._unreadable(error) from error
            raise ResponseTooLarge(
                f"{self.address} answers with {error.size} bytes, and no more than"
                f" {FRAME_BYTES_MAX} are read at once: a record batch is too large"
            ) from error
        return self._decoded(frames) if frames else ()  # Mostly: a part of a large response.

    def lost(self) -> ConnectionLost:
        """What a request gets that is sent after the end."""
        return ConnectionLost(str(self.failure or f"the connection to {self.address} is closed"))

    def closed(self) -> ConnectionLost:
        return ConnectionLost(f"the connection to {self.address} was closed")

    def closed_by_peer(self) -> ConnectionLost:
        return ConnectionLost(f"{self.address} closed the connection")

    def timed_out(self, timeout_ms: Millis) -> RequestTimeout:
        return RequestTimeout(f"{self.address} gave no answer within {timeout_ms} ms")

    def _unreadable(self, error: ProtocolError) -> ConnectionLost:
        return ConnectionLost(f"{self.address} sent what cannot be read: {error}")

    def _decoded(self, frames: list[memoryview]) -> Iterator[Any]:
        try:
            for frame in frames:
                yield self._decode(frame)
        except ProtocolError as error:
            raise self._unreadable(error) from error

    def _decode(self, frame: memoryview) -> Any:  # noqa: ANN401  The class that `encode` was given.
        if not self._expected:
            raise ProtocolError("an answer came that nobody waits for")
        due = self._expected[0]
        correlation_id, position = decode_response_header(frame, due.api_key, due.version)
        if correlation_id != due.correlation_id:
            raise ProtocolError(f"answer {correlation_id} came, {due.correlation_id} was due")
        version = due.version
        is_negotiation = due.api_key == ApiKey.API_VERSIONS
        if is_negotiation and frame[position : position + 2] == UNSUPPORTED_VERSION:
            version = 0  # A broker that does not know our version answers in the first one.
        answer, _ = decode_from(due.answer, frame, position, version)
        self._expected.popleft()
        return answer
