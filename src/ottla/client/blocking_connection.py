"""One blocking connection to one broker, for code without an event loop: Spark's tasks, scripts.

Nothing runs between two calls: a task sends, computes while the broker works, and takes the oldest
response when it needs it. A response is received into a buffer that the next one reuses, so its
bytes are valid until the next call of `receive`. After a failure the connection is closed.
"""

import socket
from collections import deque
from typing import Any, TypeVar

from ottla.client.errors import ClientError, ConnectionLost, reason
from ottla.client.protocol import ClientProtocol, Request
from ottla.env.network import Address
from ottla.model.types import Millis

Answer = TypeVar("Answer")


class BlockingConnection:
    def __init__(
        self, connected: socket.socket, address: Address, client_id: str, timeout_ms: Millis
    ) -> None:
        self.address = address
        self._socket = connected
        self._protocol = ClientProtocol(address, client_id, reuses_buffer=True)
        self._ready: deque[Any] = deque()
        self.set_timeout(timeout_ms)

    def negotiate(self) -> None:
        """Perform the handshake, before anything else is sent."""
        handshake = self._protocol.handshake()
        try:
            exchange = next(handshake)
            while True:
                exchange = handshake.send(self.ask(*exchange))
        except StopIteration:
            pass

    def set_timeout(self, timeout_ms: Millis) -> None:
        """How long the broker may be silent while a response is due."""
        self._timeout_ms = timeout_ms
        self._socket.settimeout(timeout_ms / 1000)

    @property
    def under_way(self) -> int:
        return self._protocol.under_way + len(self._ready)

    @property
    def is_idle(self) -> bool:
        """True if the connection is open and no response is due."""
        return self._protocol.failure is None and not self.under_way

    def close(self) -> None:
        self._fail(self._protocol.closed())

    def version_for(self, request: type[Request], version_max: int | None = None) -> int:
        """The newest version of an API that both sides speak."""
        return self._protocol.version_for(request, version_max)

    def ask(self, request: Request, answer: type[Answer], version: int | None = None) -> Answer:
        assert not self.under_way, "its response would not be the next one"
        self.send(request, answer, version)
        return self.receive()  # type: ignore[no-any-return]  # It is what was asked for.

    def send(self, request: Request, answer: type[Any], version: int | None = None) -> None:
        version = self.version_for(type(request)) if version is None else version
        if self._protocol.failure is not None:
            raise self._protocol.lost()
        frame = self._protocol.encode(request, answer, version)
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise self._broken(error) from error

    def receive(self) -> Any:  # noqa: ANN401  A response of the class that `send` was given.
        """The response to the oldest request; its bytes are valid until the next call."""
        ready, protocol = self._ready, self._protocol
        if not ready and protocol.failure is not None:
            raise protocol.lost()
        try:
            while not ready:
                count = self._socket.recv_into(protocol.buffer())
                if not count:
                    raise protocol.closed_by_peer()
                ready.extend(protocol.received(count))
        except OSError as error:
            raise self._broken(error) from error
        except ClientError as error:
            self._fail(error)
            if not ready:
                raise
        return ready.popleft()

    def _broken(self, error: OSError) -> ClientError:
        if isinstance(error, TimeoutError):
            return self._fail(self._protocol.timed_out(self._timeout_ms))
        sentence = f"the connection to {self.address} was lost: {reason(error)}"
        return self._fail(ConnectionLost(sentence))

    def _fail(self, failure: ClientError) -> ClientError:
        if self._protocol.failure is None:
            self._protocol.failure = failure
            self._socket.close()
        return failure
