"""An answer is awaited or called back for, and a refusal is raised to whoever looks."""

import asyncio

import pytest

from ottla.broker.machines.answer import Answer, refused
from ottla.model.errors import ErrorCode, Refusal


def test_a_listener_is_called_once_the_answer_is_given_or_at_once() -> None:
    answer: Answer[str] = Answer()
    heard: list[str] = []
    answer.then(lambda given: heard.append(given.result()))
    assert heard == []
    answer.give("reply")
    assert heard == ["reply"]
    answer.then(lambda given: heard.append(given.result()))
    assert heard == ["reply", "reply"]


def test_a_refusal_is_raised_each_time_with_a_traceback_of_its_own() -> None:
    refusal = Refusal(ErrorCode.NOT_COORDINATOR)
    depths = []
    for _ in range(3):
        with pytest.raises(Refusal) as raised:
            refused(refusal).result()
        depths.append(len(raised.traceback))
    assert len(set(depths)) == 1


def test_an_answer_can_be_awaited_before_and_after_it_is_given() -> None:
    async def work() -> list[str]:
        answer: Answer[str] = Answer()
        asyncio.get_running_loop().call_soon(answer.give, "reply")
        return [await answer, await answer]

    assert asyncio.run(work()) == ["reply", "reply"]


def test_an_awaited_refusal_is_raised() -> None:
    async def work() -> None:
        await refused(Refusal(ErrorCode.NOT_COORDINATOR))

    with pytest.raises(Refusal):
        asyncio.run(work())


def test_nobody_minds_that_whoever_awaited_has_gone() -> None:
    async def work() -> None:
        answer: Answer[str] = Answer()

        async def wait() -> str:
            return await answer

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        answer.give("reply")

    asyncio.run(work())
