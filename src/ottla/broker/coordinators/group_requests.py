"""From a handler to the machine of a group, and from its reply to the client's answer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from ottla.broker.context import BrokerContext
from ottla.broker.coordinators.group_kind import GroupCoordinators
from ottla.broker.machines.answer import Answer
from ottla.broker.wire.apis import error_response
from ottla.broker.wire.batch_scans import BatchScans
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.groups.turn import GroupCommand
from ottla.model.errors import Refusal

# ruff: noqa: ANN401  Requests and answers are of many classes.

SUBMITS_AT_ONCE_MAX: Final = 20
SUBMIT_US: Final = 20  # What a decision takes of a loop turn's budget.


class GroupContext(BrokerContext, Protocol):
    """The group coordinators of this broker, and the time that many decisions may take."""

    @property
    def groups(self) -> GroupCoordinators: ...
    @property
    def scans(self) -> BatchScans: ...


def command_of(request: object, reply: Reply) -> GroupCommand:
    """Kafka shows a client's address with a slash before it, and so do its tools."""
    origin = reply.origin
    return GroupCommand(request, reply.version, origin.client_id, f"/{origin.host}")


def coordinate(request: Any, reply: Reply, broker: GroupContext) -> None:
    """Answer what the machine of `request.group_id` decides, now or later."""
    answer = broker.groups.submit(request.group_id, command_of(request, reply))
    answer.then(partial(answer_with, request, reply))


def answer_with(request: Any, reply: Reply, answer: Answer[Any]) -> None:
    try:
        response = answer.result()
    except Refusal as refusal:
        code, message = refusal.code, refusal.message
        response = error_response(request.API_KEY, request, reply.version, code, message)
    send(reply, response)


def gather(
    submits: Sequence[Callable[[], Answer[Any]]],
    then: Callable[[list[Answer[Any]]], None],
    broker: GroupContext,
) -> None:
    """Submit to several machines; `then` gets all answers, in the same order.

    To many they are submitted in several turns of the loop.
    """
    if len(submits) > SUBMITS_AT_ONCE_MAX:
        broker.spawn(_gather_later(submits, then, broker))
    else:
        when_given([submit() for submit in submits], then)


async def _gather_later(
    submits: Sequence[Callable[[], Answer[Any]]],
    then: Callable[[list[Answer[Any]]], None],
    broker: GroupContext,
) -> None:
    answers = []
    for submit in submits:
        await broker.scans.budget.wait(SUBMIT_US)
        answers.append(submit())
    when_given(answers, then)


def when_given(answers: list[Answer[Any]], then: Callable[[list[Answer[Any]]], None]) -> None:
    missing = len(answers)

    def given(_: Answer[Any]) -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            then(answers)

    for answer in answers:
        answer.then(given)
    if not answers:
        then(answers)
