"""What is known of a request beside its body: who asks, and who decides."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.broker.wire.connection import Connection

Submit = Callable[[object], Awaitable[Any]]


class Deciders(NamedTuple):
    """The controller and the quorum, as the requests of one listener reach them."""

    submit: Submit  # The active controller's response; raises its Refusal.
    ask_quorum: Callable[[Any, Callable[[Any], None]], None]  # This node's part of the quorum.
    ask_leader: Submit  # The quorum's leader, wherever it is.


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Who asks: what a coroutine handler may know of the request beside its body."""

    version: int
    client_id: str | None
    connection: Connection
    submit: Submit  # The way to the active controller.
