"""Failures on request: what a test asks a broker to do wrong, for the next requests of an API.

A broker has none unless a test put them there; then requests are served by the ordinary handlers
and not by their fast paths. Each fault is used up by one request.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ottla.broker.context import Node
from ottla.broker.wire.apis import error_response
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.env.network import Piece
from ottla.model.errors import ErrorCode
from ottla.model.types import Millis
from ottla.protocol.apis import ApiKey

# ruff: noqa: ANN401  Requests are of whatever class their API has.

ACKS_NONE = 0


# Spoils one request. Returns where it is to be answered, if it is to be served at all.
Fault = Callable[[Any, Reply, Node], Reply | None]


class Faults:
    def __init__(self) -> None:
        self.waiting: dict[int, deque[Fault]] = {}

    def add(self, api_key: ApiKey, fault: Fault, times: int) -> None:
        self.waiting.setdefault(api_key, deque()).extend([fault] * times)

    def take(self, api_key: int) -> Fault | None:
        """What is to happen to this request; the next one will meet the next fault."""
        waiting = self.waiting.get(api_key)
        if waiting is None:
            return None
        fault = waiting.popleft()
        if not waiting:
            del self.waiting[api_key]
        return fault

    def left(self, api_key: ApiKey) -> int:
        """How many of an API's next requests are going to meet a fault."""
        return len(self.waiting.get(api_key, ()))

    def clear(self) -> None:
        self.waiting.clear()


class Fail:
    """Answer with an error, and do nothing."""

    def __init__(self, api_key: ApiKey, code: ErrorCode, message: str | None = None) -> None:
        self._api_key = api_key
        self._code = code
        self._message = message

    def __call__(self, request: Any, reply: Reply, _node: Node) -> None:
        if self._api_key == ApiKey.PRODUCE and request.acks == ACKS_NONE:
            reply.connection.close()  # Nobody reads an answer; Kafka closes, too.
            return
        send(
            reply,
            error_response(self._api_key, request, reply.version, self._code, self._message),
        )


class Drop:
    """Close the connection instead of serving the request."""

    def __call__(self, _request: Any, reply: Reply, _node: Node) -> None:
        reply.connection.close()


class Delay:
    """Serve the request, and keep its answer back for a while."""

    def __init__(self, delay_ms: Millis) -> None:
        self._delay_ms = delay_ms

    def __call__(self, _request: Any, reply: Reply, node: Node) -> Reply:
        return DelayedReply(reply, node, self._delay_ms)


class LoseAnswer:
    """Serve the request, and close the connection when it would be answered."""

    def __call__(self, _request: Any, reply: Reply, _node: Node) -> Reply:
        return LostReply(reply)


class SpoiledReply(Reply):
    """Takes the answer in place of the reply that the connection waits for."""

    __slots__ = ("_reply",)

    def __init__(self, reply: Reply) -> None:
        super().__init__(
            reply.connection,
            reply.correlation_id,
            reply.version,
            reply.client_id,
            reply.deciders,
        )
        self._reply = reply


class DelayedReply(SpoiledReply):
    __slots__ = ("_delay_ms", "_node")

    def __init__(self, reply: Reply, node: Node, delay_ms: Millis) -> None:
        super().__init__(reply)
        self._node = node
        self._delay_ms = delay_ms

    def complete(self, pieces: Sequence[Piece]) -> None:
        assert self.pieces is None, "a request is answered once"
        self.pieces = pieces
        self._node.call_later(self._delay_ms, partial(self._reply.complete, pieces))


class LostReply(SpoiledReply):
    __slots__ = ()

    def complete(self, pieces: Sequence[Piece]) -> None:
        assert self.pieces is None, "a request is answered once"
        self.pieces = pieces
        self.connection.close()
