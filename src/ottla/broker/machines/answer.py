"""What comes of a command: a reply, or a Refusal that is raised to whoever looks."""

import asyncio
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from ottla.model.errors import Refusal

Reply = TypeVar("Reply")


def refused(refusal: Refusal) -> "Answer[Any]":
    """The answer to a command that nobody decides here, or now."""
    answer: Answer[Any] = Answer()
    answer.give(refusal)
    return answer


class Answer(Generic[Reply]):
    """Given now or later, once; has one listener, which awaits it or is called back."""

    __slots__ = ("_answer", "_listener", "is_given")

    _answer: Reply | Refusal

    def __init__(self) -> None:
        self.is_given = False
        self._listener: Callable[[Answer[Reply]], None] | None = None

    def give(self, answer: Reply | Refusal) -> None:
        assert not self.is_given, "a command is answered once"
        self._answer, self.is_given = answer, True
        if self._listener is not None:
            self._listener(self)

    def then(self, listener: "Callable[[Answer[Reply]], None]") -> None:
        """Call `listener` once the answer is given; at once if it is."""
        if self.is_given:
            listener(self)
        else:
            self._listener = listener

    def result(self) -> Reply:
        """The reply; raises the Refusal that was given instead."""
        assert self.is_given, "whoever looks was called back"
        if isinstance(self._answer, Refusal):
            raise self._answer.with_traceback(None)  # Many may be given the same one.
        return self._answer

    def __await__(self) -> Generator[Any, None, Reply]:
        if not self.is_given:
            given = asyncio.get_running_loop().create_future()
            self.then(lambda _: None if given.done() else given.set_result(None))
            yield from given
        return self.result()
