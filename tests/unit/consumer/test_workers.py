"""Workers: retries, failures and the end of a task."""

import threading

import pytest

from ottla.client.message import Message
from ottla.consumer.errors import HandlerFailed, Reject
from ottla.consumer.lanes import Task
from ottla.consumer.workers import GiveUp, Handler, Workers, is_async

SECONDS_MAX = 10


def messages(*values: bytes) -> list[Message]:
    return [
        Message("t", 0, offset, 0, False, None, value, ()) for offset, value in enumerate(values)
    ]


def nobody(_message: Message, _error: Exception) -> None:
    raise AssertionError("nothing is given up here")


def run(handler: Handler, task: Task, *, retries: int = 0, give_up: GiveUp = nobody) -> Task:
    workers = Workers(handler, 1, retries=retries, give_up=give_up)
    workers.start()
    workers.begin(task)
    assert workers.collect(SECONDS_MAX)
    workers.stop()
    assert task.is_over
    return task


def test_records_are_handled_in_order() -> None:
    seen: list[Message] = []
    task = run(seen.append, Task(messages(b"a", b"b", b"c"), 0))
    assert [item.value for item in seen] == [b"a", b"b", b"c"]
    assert task.done == 3


def test_a_failure_with_retries_left_ends_the_task() -> None:
    def fail_on_b(message: Message) -> None:
        if message.value == b"b":
            raise ValueError("b")

    task = run(fail_on_b, Task(messages(b"a", b"b", b"c"), 0), retries=2)
    assert (task.done, task.failures) == (1, 1)
    assert isinstance(task.failure, ValueError)


def test_a_record_is_given_up_after_its_last_failure_and_the_task_continues() -> None:
    given_up: list[tuple[int, str]] = []

    def fail_on_a(message: Message) -> None:
        if message.value == b"a":
            raise ValueError("a")

    task = run(
        fail_on_a,
        Task(messages(b"a", b"b"), 2),
        retries=2,
        give_up=lambda message, error: given_up.append((message.offset, str(error))),
    )
    assert given_up == [(0, "a")]
    assert (task.done, task.failure) == (2, None)


def test_a_rejected_record_is_not_tried_again() -> None:
    given_up: list[Message] = []

    def reject(_message: Message) -> None:
        raise Reject("never")

    run(
        reject,
        Task(messages(b"a"), 0),
        retries=9,
        give_up=lambda message, _error: given_up.append(message),
    )
    assert len(given_up) == 1


def test_a_record_whose_dead_letter_fails_is_not_handled() -> None:
    def fail(_message: Message) -> None:
        raise ValueError

    def refuse(_message: Message, error: Exception) -> None:
        raise HandlerFailed("no") from error

    task = run(fail, Task(messages(b"a", b"b"), 0), give_up=refuse)
    assert task.done == 0
    assert isinstance(task.fatal, HandlerFailed)


def test_a_cancelled_task_finishes_its_record_and_starts_no_other() -> None:
    tasks: list[Task] = []

    def cancel(_message: Message) -> None:
        tasks[0].is_cancelled = True

    tasks.append(Task(messages(b"a", b"b"), 0))
    assert run(cancel, tasks[0]).done == 1


def test_an_async_handler_runs_on_one_loop_for_all_workers() -> None:
    threads: set[str] = set()

    async def handle(_message: Message) -> None:
        threads.add(threading.current_thread().name)

    assert run(handle, Task(messages(b"a", b"b"), 0)).done == 2
    assert threads == {"ottla-consumer-loop"}


def test_an_async_handlers_failure_counts_as_any() -> None:
    async def fail(_message: Message) -> None:
        raise ValueError("later")

    assert isinstance(run(fail, Task(messages(b"a"), 0), retries=1).failure, ValueError)


def test_a_callable_object_may_be_async() -> None:
    class Handles:
        async def __call__(self, _message: Message) -> None:
            pass

    assert is_async(Handles())
    assert not is_async(print)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_base_exception_of_a_handler_is_passed_on(kind: type[BaseException]) -> None:
    def leave(_message: Message) -> None:
        raise kind

    assert isinstance(run(leave, Task(messages(b"a"), 0)).fatal, kind)


def test_collect_returns_false_without_tasks() -> None:
    workers = Workers(print, 1, retries=0, give_up=nobody)
    assert not workers.collect()
    assert not workers.collect(0.01)
