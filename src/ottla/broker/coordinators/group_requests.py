"""From a handler to the machine of a group, and from its reply to the client's answer."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from ottla.broker.context import BrokerContext
from ottla.broker.coordinators.coordinators import GroupCoordinators
from ottla.broker.wire.apis import error_response
from ottla.broker.wire.batch_scans import BatchScans
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.groups.turn import GroupCommand
from ottla.model.errors import Refusal

# ruff: noqa: ANN401  Requests and answers are of many classes.

logger = logging.getLogger(__name__)

ASKS_AT_ONCE_MAX: Final = 20
ASK_US: Final = 20  # What a decision takes of a loop turn's budget.


class GroupContext(BrokerContext, Protocol):
    """The group coordinators of this broker, and the time that asking many of them may take."""

    @property
    def groups(self) -> GroupCoordinators: ...
    @property
    def scans(self) -> BatchScans: ...


def command_of(request: object, reply: Reply) -> GroupCommand:
    """Kafka shows a client's address with a slash before it, and so do its tools."""
    host = f"/{reply.connection.remote.host}"
    return GroupCommand(request, reply.version, reply.client_id or "", host)


def coordinate(request: Any, reply: Reply, broker: GroupContext) -> None:
    """Answer what the machine of `request.group_id` decides, now or later."""
    command = command_of(request, reply)
    broker.groups.ask(request.group_id, command, lambda answer: answer_with(request, reply, answer))


def answer_with(request: Any, reply: Reply, answer: Any) -> None:
    if reply.connection.is_closed:
        return
    if isinstance(answer, Refusal):
        code, message = answer.code, answer.message
        answer = error_response(request.API_KEY, request, reply.version, code, message)
    respond(reply, answer)


def respond(reply: Reply, response: Any) -> None:
    """Send a response that comes out of a machine, or close the connection.

    A response that cannot be encoded (an id too long for an old version) must not raise into the
    machine that gave it.
    """
    try:
        send(reply, response)
    except ValueError as error:
        logger.error("closing the connection from %s: %s", reply.connection.remote, error)
        reply.connection.close()


def gather(
    asks: Sequence[Callable[[Callable[[Any], None]], None]],
    then: Callable[[list[Any]], None],
    broker: GroupContext,
) -> None:
    """Ask several machines; `then` gets an answer or a Refusal for each, in the same order.

    Many are asked in several turns of the loop.
    """
    answers: list[Any] = [None] * len(asks)
    missing = len(asks)

    def answered(position: int, answer: Any) -> None:
        nonlocal missing
        answers[position] = answer
        missing -= 1
        if not missing:
            then(answers)

    def ask(position: int) -> None:
        try:
            asks[position](partial(answered, position))
        except Refusal as refusal:
            answered(position, refusal)

    async def ask_all() -> None:
        for position in range(len(asks)):
            await broker.scans.budget.wait(ASK_US)
            ask(position)

    if not asks:
        then([])
    elif len(asks) > ASKS_AT_ONCE_MAX:
        broker.spawn(ask_all())
    else:
        for position in range(len(asks)):
            ask(position)
