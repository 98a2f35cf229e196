"""One connection to one broker over the network seam: requests out, responses in, in order.

The transport fills `buffer()` and calls `received`; `ClientProtocol` decodes. Many requests may be
under way at once. A connection is open until it is closed, refuses its peer's bytes or waits too
long; then everything that was under way fails and a new one must be opened (`Dialer`).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.client.errors import ClientError
from ottla.client.protocol import ClientProtocol, Request
from ottla.env.network import Address, Channel
from ottla.model.types import Millis
from ottla.protocol.messages import api_versions

Answer = TypeVar("Answer")


class Connection:
    def __init__(self, channel: Channel, address: Address, client_id: str) -> None:
        self.address = address
        self.on_lost: Callable[[], None] | None = None  # The peer closed it, or the network did.
        self._channel = channel
        self._protocol = ClientProtocol(address, client_id)
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._has_sent = asyncio.Event()

    async def negotiate(self) -> None:
        """Perform the handshake, before anything else is sent."""
        handshake = self._protocol.handshake()
        try:
            exchange = next(handshake)
            while True:
                request, answer, version = exchange
                exchange = handshake.send(await self.send(request, answer, version=version))
        except StopIteration:
            pass

    @property
    def is_open(self) -> bool:
        return self._protocol.failure is None

    @property
    def api_versions(self) -> api_versions.Response:
        return self._protocol.api_versions

    def version_for(self, request: type[Request], version_max: int | None = None) -> int:
        """The newest version of an API that both sides speak."""
        return self._protocol.version_for(request, version_max)

    def send(
        self, request: Request, answer: type[Answer], *, version: int | None = None
    ) -> "asyncio.Future[Answer]":
        """Send a request; the future holds its answer, or why there is none."""
        if version is None:
            version = self.version_for(type(request))
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        if not self.is_open:
            future.set_exception(self._protocol.lost())
            return future
        frame = self._protocol.encode(request, answer, version)
        self._waiting.append(future)
        self._channel.send([frame])
        return future

    def send_unanswered(self, request: Request, *, version: int) -> None:
        """Send a request that no broker answers: a produce with acks 0."""
        if not self.is_open:
            raise self._protocol.lost()
        self._channel.send([self._protocol.encode(request, None, version)])

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
            error = self._protocol.timed_out(timeout_ms)
            self._fail(error)
            raise error from None

    async def wait_sent(self, timeout_ms: Millis) -> None:
        """Wait until the transport has taken everything, so that it does not pile up here.

        Closes the connection if that takes longer: a peer without power sends no reset.
        """
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while self.is_open and self._channel.unsent:
                    self._has_sent.clear()
                    await self._has_sent.wait()
        except TimeoutError:
            self._fail(self._protocol.timed_out(timeout_ms))

    @property
    def under_way(self) -> int:
        return self._protocol.under_way

    def close(self) -> None:
        self._fail(self._protocol.closed())

    # What the transport calls.

    def buffer(self) -> memoryview:
        return self._protocol.buffer()

    def received(self, count: int) -> None:
        try:
            for answer in self._protocol.received(count):
                future = self._waiting.popleft()
                if not future.done():  # Else its owner does not wait any more.
                    future.set_result(answer)
        except ClientError as error:
            self._fail(error)

    def sent(self) -> None:
        self._has_sent.set()

    def closed(self) -> None:
        if self.is_open and self.on_lost is not None:
            self.on_lost()
        self._fail(self._protocol.closed_by_peer())

    def _fail(self, failure: ClientError) -> None:
        """End it: everything that is under way fails, and so does the next request."""
        if not self.is_open:
            return
        self._protocol.failure = failure
        self._channel.close()
        for future in self._waiting:
            if not future.done():
                future.set_exception(failure)
                future.exception()  # Whoever waits gets it; nobody has to.
        self._waiting.clear()
        self._has_sent.set()
