"""The controller and the quorum, as the requests of one listener reach them."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ottla.model.principal import Origin

# The response to a request on behalf of a client; raises the Refusal given instead.
Submit = Callable[[Any, Origin], Awaitable[Any]]


class Deciders(NamedTuple):
    submit: Submit  # The active controller.
    ask_quorum: Callable[[Any, Callable[[Any], None]], None]  # This node's part of the quorum.
    ask_leader: Submit  # The quorum's leader, wherever it is.
