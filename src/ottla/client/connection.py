"""One connection to one broker: requests go out in order, answers come back in order.

Sans-IO towards the network seam: the transport fills `buffer()` and calls `received`. Many
requests may be under way at once. A connection is open until it is closed, refuses its peer's
bytes or waits too long; then everything that was under way fails and a new one must be opened.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from socket import gaierror
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ottla import __version__
from ottla.client.errors import (
    CannotConnect,
    ClientError,
    ConnectionLost,
    NotServed,
    RequestTimeout,
    UnknownHost,
    check,
)
from ottla.client.frames import LENGTH, Frames
from ottla.env.network import Address, Channel, Network
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


@dataclass(slots=True)
class Waiting(Generic[Answer]):
    """A request that is under way."""

    correlation_id: int
    api_key: int
    version: int
    answer: type[Answer]
    future: "asyncio.Future[Answer]"


class Connection:
    def __init__(self, channel: Channel, address: Address, client_id: str) -> None:
        self.address = address
        self.is_open = True
        self.api_versions = api_versions.Response()
        self._ranges: dict[int, range] = {ApiKey.API_VERSIONS: api_versions.Request.VERSIONS}
        self._channel = channel
        self._client_id = client_id
        self._frames = Frames(FRAME_BYTES_MAX)
        self._waiting: deque[Waiting[Any]] = deque()
        self._correlation_id = 0
        self._failure: ClientError | None = None
        self._has_sent = asyncio.Event()
        self.on_lost: Callable[[], None] | None = None  # The peer closed it, or the network did.

    @classmethod
    async def open(
        cls, network: Network, address: Address, *, client_id: str, timeout_ms: Millis
    ) -> "Connection":
        """Connect and learn which APIs the broker serves."""
        made: list[Connection] = []

        def accept(channel: Channel) -> Connection:
            made.append(cls(channel, address, client_id))
            return made[0]

        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await network.connect(address.host, address.port, accept)
                await made[0]._negotiate()
        except (OSError, TimeoutError, ClientError, ValueError) as error:  # Of the host's name.
            if made:
                made[0].close()
            kind = UnknownHost if isinstance(error, gaierror) else CannotConnect
            raise kind(f"cannot connect to {address}: {_reason(error)}") from error
        return made[0]

    def version_for(self, request: type[Request], version_max: int | None = None) -> int:
        """The newest version of an API that both sides speak."""
        key = ApiKey(request.API_KEY)
        served = self._ranges.get(key, range(0))
        newest = min(served.stop, request.VERSIONS.stop) - 1
        if version_max is not None:
            newest = min(newest, version_max)
        if newest < max(served.start, request.VERSIONS.start) or not served:
            raise NotServed(f"the broker at {self.address} does not serve {key.name}")
        return newest

    def send(
        self, request: Request, answer: type[Answer], *, version: int | None = None
    ) -> "asyncio.Future[Answer]":
        """Send a request; the future holds its answer, or why there is none."""
        if version is None:
            version = self.version_for(type(request))
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if not self.is_open:
            future.set_exception(self._lost())
            return future
        frame = self._frame(request, version)
        self._waiting.append(
            Waiting(self._correlation_id, request.API_KEY, version, answer, future)
        )
        self._channel.send([frame])
        return future

    def send_unanswered(self, request: Request, *, version: int) -> None:
        """Send a request that no broker answers: a produce with acks 0."""
        if not self.is_open:
            raise self._lost()
        self._channel.send([self._frame(request, version)])

    async def ask(
        self,
        request: Request,
        answer: type[Answer],
        *,
        timeout_ms: Millis,
        version_max: int | None = None,
    ) -> Answer:
        """Send a request and wait for its answer. A peer that stays silent is given up."""
        version = self.version_for(type(request), version_max)
        return await self.wait(self.send(request, answer, version=version), timeout_ms)

    async def wait(self, future: "asyncio.Future[Answer]", timeout_ms: Millis) -> Answer:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await future
        except TimeoutError:
            error = RequestTimeout(f"{self.address} gave no answer within {timeout_ms} ms")
            self._fail(error)
            raise error from None

    async def wait_sent(self) -> None:
        """Wait until the transport has taken everything, so that it does not pile up here."""
        while self.is_open and self._channel.unsent:
            self._has_sent.clear()
            await self._has_sent.wait()

    @property
    def under_way(self) -> int:
        return len(self._waiting)

    def close(self) -> None:
        self._fail(ConnectionLost(f"the connection to {self.address} was closed"))

    # What the transport calls.

    def buffer(self) -> memoryview:
        return self._frames.buffer()

    def received(self, count: int) -> None:
        try:
            for frame in self._frames.received(count):
                self._answered(frame)
        except ProtocolError as error:
            self._fail(ConnectionLost(f"{self.address} sent what cannot be read: {error}"))

    def sent(self) -> None:
        self._has_sent.set()

    def closed(self) -> None:
        if self.is_open and self.on_lost is not None:
            self.on_lost()
        self._fail(ConnectionLost(f"{self.address} closed the connection"))

    async def _negotiate(self) -> None:
        """Ask in our newest version; a broker that is older says what it speaks (KIP-511)."""
        request = api_versions.Request("ottla", __version__)
        answer = await self.send(request, api_versions.Response)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            own = {item.api_key: item.max_version for item in answer.api_keys}
            version = min(own.get(request.API_KEY, 0), request.VERSIONS.stop - 1)
            answer = await self.send(request, api_versions.Response, version=version)
        check(answer.error_code, about=str(self.address))
        self.api_versions = answer
        self._ranges = {
            item.api_key: range(item.min_version, item.max_version + 1) for item in answer.api_keys
        }

    def _frame(self, request: Request, version: int) -> bytearray:
        self._correlation_id = (self._correlation_id + 1) & CORRELATION_ID_MAX
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        frame = bytearray(LENGTH.size) + encode_request_header(header)
        encode_into(request, version, frame)
        LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
        return frame

    def _answered(self, frame: memoryview) -> None:
        if not self._waiting:
            raise ProtocolError("an answer came that nobody waits for")
        waiting = self._waiting[0]
        version = waiting.version
        correlation_id, position = decode_response_header(frame, waiting.api_key, version)
        if correlation_id != waiting.correlation_id:
            raise ProtocolError(f"answer {correlation_id} came, {waiting.correlation_id} was due")
        is_negotiation = waiting.api_key == ApiKey.API_VERSIONS
        if is_negotiation and frame[position : position + 2] == UNSUPPORTED_VERSION:
            version = 0  # A broker that does not know our version answers in the first one.
        answer, _ = decode_from(waiting.answer, frame, position, version)
        self._waiting.popleft()
        if not waiting.future.done():  # Else its owner does not wait any more.
            waiting.future.set_result(answer)

    def _lost(self) -> Exception:
        return ConnectionLost(str(self._failure or f"the connection to {self.address} is closed"))

    def _fail(self, failure: ClientError) -> None:
        """End it: everything that is under way fails, and so does the next request."""
        if not self.is_open:
            return
        self.is_open = False
        self._failure = failure
        self._channel.close()
        for waiting in self._waiting:
            if not waiting.future.done():
                waiting.future.set_exception(failure)
                waiting.future.exception()  # Whoever waits gets it; nobody has to.
        self._waiting.clear()
        self._has_sent.set()


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not error.args:
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
