"""A response, with its header, in its place among the answers of its connection.

A response may be made in the middle of another's work: a flush, a timer, a change of the image. So
`send` raises nothing: one that cannot be encoded costs its own connection.

A short request may ask for all that exists. Such a response is made, and encoded, in turns of the
loop that have the time for it, while its connection is held.
"""

from collections.abc import Callable, Collection, Iterator
from struct import Struct
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from ottla.broker.context import BrokerContext
from ottla.broker.wire.batch_scans import BatchScans
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.connections import Connections
from ottla.model.errors import ProtocolError, Refusal
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import encode_into, encode_steps
from ottla.protocol.encoder_source import STEP

Item = TypeVar("Item")
Made = TypeVar("Made")

FEW: Final = 100  # Elements that cost what any answer costs.
ELEMENT_US: Final = 5  # To make one and to encode it.

_FRAME_START = Struct(">ii")


def send(reply: Reply, response: Any) -> None:  # noqa: ANN401
    """Encode a response with its header and put it into its place.

    A name that a client sent may be longer when it is encoded again: bytes that are no UTF-8 become
    three bytes each.
    """
    if reply.connection.is_closed:
        return
    if isinstance(response, Encoded):
        frame = _started(reply, response.of)
        frame += response.body
        _complete(reply, frame)
        return
    frame = _started(reply, type(response))
    try:
        encode_into(response, reply.version, frame)
    except (ValueError, Refusal) as error:
        _fail(reply, error)
    else:
        _complete(reply, frame)


class Encoded(NamedTuple):
    """A response whose bytes are there already."""

    of: type[Any]
    body: bytes | bytearray


class TurnContext(BrokerContext, Protocol):
    """The time that there is in a turn of the loop, and what becomes of a failed connection."""

    @property
    def scans(self) -> BatchScans: ...
    @property
    def connections(self) -> Connections: ...


class Lazy(Generic[Item, Made]):
    """The elements of a message's array, made one by one while they are encoded."""

    def __init__(self, items: Collection[Item], make: Callable[[Item], Made]) -> None:
        self._items = items
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Made]:
        return map(self._make, self._items)


def respond(reply: Reply, make: Callable[[], Any], elements: int, context: TurnContext) -> None:
    """Make and send a response of about so many elements: now, or when there is time for it.

    `make` does not raise, and takes no longer than a step; `Lazy` arrays take the rest.
    """
    us = elements * ELEMENT_US
    if elements <= FEW or (elements <= STEP and context.scans.budget.take_share(us)):
        send(reply, make())
    else:
        reply.connection.hold()
        context.spawn(_respond_later(reply, make, context))


async def _respond_later(reply: Reply, make: Callable[[], Any], context: TurnContext) -> None:
    connection = reply.connection
    try:
        await context.scans.budget.wait(STEP * ELEMENT_US)
        response = make()
        frame = _started(reply, type(response))
        for _ in encode_steps(response, reply.version, frame):
            await context.scans.budget.wait(STEP * ELEMENT_US)
            if connection.is_closed:
                return
        if not connection.is_closed:
            _complete(reply, frame)
    except Exception as error:  # noqa: BLE001  The connection's guard decides.
        _fail(reply, error)
    finally:
        connection.release()


def _fail(reply: Reply, error: Exception) -> None:
    """A value too large for its place comes from a client; anything else is our mistake."""
    if isinstance(error, ValueError):
        error = ProtocolError(f"an answer cannot be encoded: {error}")
    reply.fail(error)


async def encoded(response: Any, elements: int, version: int, context: TurnContext) -> Any:  # noqa: ANN401
    """The response of about so many elements; `Encoded`, in turns that have time, if it is long."""
    if elements <= FEW:
        return response
    body = bytearray()
    for _ in encode_steps(response, version, body):
        await context.scans.budget.wait(STEP * ELEMENT_US)
    return Encoded(type(response), body)


def _started(reply: Reply, cls: type[Any]) -> bytearray:
    frame = bytearray(8)
    if reply.version >= cls.FLEXIBLE_SINCE and cls.API_KEY != ApiKey.API_VERSIONS:
        frame.append(0)  # The response header's tagged fields: none.
    return frame


def _complete(reply: Reply, frame: bytearray) -> None:
    _FRAME_START.pack_into(frame, 0, len(frame) - 4, reply.correlation_id)
    reply.complete((bytes(frame),))
