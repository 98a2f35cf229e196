"""A blocking connection to one broker, for the tasks of Spark: requests out, answers in order.

Nothing runs between two calls, and there is no event loop: a task has one partition and one thing
to wait for. An answer is received into a buffer that the next one reuses, so whoever wants to keep
bytes copies them. Connections outlive tasks, as Spark's workers do: `borrow` and `give_back`.
"""

import os
import socket
from collections import deque
from typing import Any, TypeVar

from ottla import __version__
from ottla.client.connection import FRAME_BYTES_MAX, Request
from ottla.client.errors import (
    CannotConnect,
    ClientError,
    ConnectionLost,
    NotServed,
    RequestTimeout,
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

BUFFER_BYTES = 64 * 1024
CONNECT_SECONDS_MAX = 5.0


class TooLarge(ClientError):
    """An answer that would take more memory than a task may have."""


class Link:
    def __init__(self, address: Address, client_id: str, timeout_ms: int) -> None:
        """Connect, and learn which APIs the broker serves."""
        self.address = address
        self._client_id = client_id
        self._is_broker = False  # Until it has said which APIs it serves.
        self._correlation_id = 0
        self._under_way: deque[tuple[int, int, int, type[Any]]] = deque()
        self._buffer = bytearray(BUFFER_BYTES)
        self._ranges = {int(ApiKey.API_VERSIONS): api_versions.Request.VERSIONS}
        try:
            self._socket = socket.create_connection(
                (address.host, address.port), min(CONNECT_SECONDS_MAX, timeout_ms / 1000)
            )
        except OSError as failure:
            why = failure.strerror or str(failure)
            raise CannotConnect(f"cannot connect to {address}: {why.lower()}") from failure
        self._socket.settimeout(timeout_ms / 1000)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._negotiate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._under_way.clear()
        self._socket.close()

    @property
    def is_idle(self) -> bool:
        return not self._under_way and self._socket.fileno() >= 0

    def version_for(self, request: type[Request], version_max: int | None = None) -> int:
        """The newest version of an API that both sides speak."""
        served = self._ranges.get(request.API_KEY, range(0))
        newest = min(served.stop, request.VERSIONS.stop) - 1
        newest = newest if version_max is None else min(newest, version_max)
        if not served or newest < max(served.start, request.VERSIONS.start):
            name = ApiKey(request.API_KEY).name
            raise NotServed(f"the broker at {self.address} does not serve {name}")
        return newest

    def ask(self, request: Request, answer: type[Answer], version: int | None = None) -> Answer:
        assert not self._under_way, "its answer would not be the next one"
        self.send(request, answer, version)
        return self.receive()  # type: ignore[no-any-return]  # It is what was asked for.

    def send(self, request: Request, answer: type[Any], version: int | None = None) -> None:
        version = self.version_for(type(request)) if version is None else version
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(request.API_KEY, version, self._correlation_id, self._client_id)
        frame = bytearray(LENGTH.size) + encode_request_header(header)
        encode_into(request, version, frame)
        LENGTH.pack_into(frame, 0, len(frame) - LENGTH.size)
        try:
            self._socket.sendall(frame)
        except OSError as failure:
            raise ConnectionLost(f"the connection to {self.address} was lost") from failure
        self._under_way.append((request.API_KEY, version, self._correlation_id, answer))

    def receive(self) -> Any:  # noqa: ANN401  An answer of the class that was given with its request.
        """The answer to the oldest request; its bytes are good until the next call."""
        key, version, expected, answer = self._under_way.popleft()
        frame = self._frame()
        try:
            correlation_id, position = decode_response_header(frame, key, version)
            if correlation_id != expected:
                raise ProtocolError(f"answer {correlation_id} came, {expected} was due")
            if key == ApiKey.API_VERSIONS and _is_unsupported(frame, position):
                version = 0  # A broker that does not know our version answers in the first one.
            return decode_from(answer, frame, position, version)[0]
        except ProtocolError as failure:
            raise ConnectionLost(f"{self.address} sent what cannot be read: {failure}") from failure

    def _frame(self) -> memoryview:
        self._fill(LENGTH.size)
        (size,) = LENGTH.unpack_from(self._buffer)
        if size > FRAME_BYTES_MAX and self._is_broker:
            raise TooLarge(
                f"{self.address} answers with {size} bytes, and no more than {FRAME_BYTES_MAX} are"
                " read at once: a record batch is too large"
            )
        if not 0 <= size <= FRAME_BYTES_MAX:
            raise ConnectionLost(
                f"{self.address} announces {size} bytes: no Kafka broker, it seems"
            )
        if size > len(self._buffer):
            self._buffer = bytearray(size + size // 8)
        return self._fill(size)

    def _fill(self, size: int) -> memoryview:
        view = memoryview(self._buffer)[:size]
        have = 0
        try:
            while have < size:
                count = self._socket.recv_into(view[have:])
                if not count:
                    raise ConnectionLost(f"{self.address} closed the connection")
                have += count
        except TimeoutError as failure:
            raise RequestTimeout(f"{self.address} gave no answer in time") from failure
        except OSError as failure:
            raise ConnectionLost(f"the connection to {self.address} was lost") from failure
        return view

    def _negotiate(self) -> None:
        request = api_versions.Request("ottla", __version__)
        answer = self.ask(request, api_versions.Response)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            own = {item.api_key: item.max_version for item in answer.api_keys}
            version = min(own.get(request.API_KEY, 0), request.VERSIONS.stop - 1)
            answer = self.ask(request, api_versions.Response, version)
        check(answer.error_code, about=str(self.address))
        self._is_broker = True
        self._ranges = {
            item.api_key: range(item.min_version, item.max_version + 1) for item in answer.api_keys
        }


def _is_unsupported(frame: memoryview, position: int) -> bool:
    code = int.from_bytes(frame[position : position + 2], "big")
    return code == ErrorCode.UNSUPPORTED_VERSION


# Links that no task uses at the moment. A fork must not share its parent's sockets.
_idle: dict[tuple[int, Address, str], Link] = {}


def borrow(address: Address, client_id: str, timeout_ms: int) -> tuple[Link, bool]:
    """A link, and whether it is new: one that lay idle may have been closed by the broker."""
    link = _idle.pop((os.getpid(), address, client_id), None)
    if link is not None:
        return link, False
    return Link(address, client_id, timeout_ms), True


def close_idle() -> None:
    """Close what nobody uses; a worker that ends does so by itself."""
    while _idle:
        _idle.popitem()[1].close()


def give_back(link: Link) -> None:
    key = (os.getpid(), link.address, link._client_id)
    if not link.is_idle or key in _idle:
        link.close()
    else:
        _idle[key] = link
