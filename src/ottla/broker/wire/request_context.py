"""What is known of a request beside its body: its version, on whose behalf it is, who decides.

A plain handler finds the same on its `Reply`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.broker.wire.connection import Connection
from ottla.model.principal import Origin

# The active controller's response to a request on behalf of a client; raises its Refusal.
Submit = Callable[[Any, Origin], Awaitable[Any]]


class Deciders(NamedTuple):
    """The controller and the quorum, as the requests of one listener reach them."""

    submit: Submit
    ask_quorum: Callable[[Any, Callable[[Any], None]], None]  # This node's part of the quorum.
    ask_leader: Callable[[Any], Awaitable[Any]]  # The quorum's leader, wherever it is.


@dataclass(frozen=True, slots=True)
class RequestContext:
    version: int
    origin: Origin  # Of an Envelope: the client of the broker that sent it.
    connection: Connection
    deciders: Deciders

    @property
    def listener(self) -> str:
        return self.connection.listener

    async def submit(self, request: object) -> Any:  # noqa: ANN401
        """The active controller's response, on behalf of the same client."""
        return await self.deciders.submit(request, self.origin)
