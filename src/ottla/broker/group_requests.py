"""From a handler to the machine of a group, and from its reply to the client's answer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.dispatch import send
from ottla.broker.error_responses import error_response
from ottla.groups.turn import GroupCommand
from ottla.model.errors import Refusal

if TYPE_CHECKING:
    from ottla.broker.connection import Reply
    from ottla.broker.server import Broker

# ruff: noqa: ANN401  Requests and answers are of many classes.


def command_of(request: object, reply: "Reply") -> GroupCommand:
    """Kafka shows a client's address with a slash before it, and so do its tools."""
    host = f"/{reply.connection.remote.host}"
    return GroupCommand(request, reply.version, reply.client_id or "", host)


def coordinate(request: Any, reply: "Reply", broker: "Broker") -> None:
    """Answer what the machine of `request.group_id` decides, now or later."""
    command = command_of(request, reply)
    broker.groups.ask(request.group_id, command, lambda answer: answer_with(request, reply, answer))


def answer_with(request: Any, reply: "Reply", answer: Any) -> None:
    if reply.connection.is_closed:
        return
    if isinstance(answer, Refusal):
        code, message = answer.code, answer.message
        answer = error_response(request.API_KEY, request, reply.version, code, message)
    send(reply, answer)


def gather(
    asks: Sequence[Callable[[Callable[[Any], None]], None]], then: Callable[[list[Any]], None]
) -> None:
    """Ask several machines; `then` gets an answer or a Refusal for each, in the same order."""
    answers: list[Any] = [None] * len(asks)
    missing = len(asks)

    def answered(position: int, answer: Any) -> None:
        nonlocal missing
        answers[position] = answer
        missing -= 1
        if not missing:
            then(answers)

    if not asks:
        then([])
    for position, ask in enumerate(asks):
        try:
            ask(partial(answered, position))
        except Refusal as refusal:
            answered(position, refusal)
