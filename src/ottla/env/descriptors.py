"""Descriptors that are kept back, so that connections never take the last ones of a process.

A broker whose descriptors are used up by idle clients could neither begin a segment, nor read one
that is not open, nor reach another broker. So it holds some descriptors of its own. Opening a log's
file or connecting to a peer takes one of these if no other is free. The listener accepts nobody
before all of them are held again. While it waits for that, a few are free for what opens files
elsewhere: the import of a handler at its first request, the resolver of names.
"""

import os
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from ottla.env.errnos import SHORT

RESERVED_MAX: Final = 32
LENT_MAX: Final = 4

Arguments = ParamSpec("Arguments")
Opened = TypeVar("Opened")


class Reserve:
    """Of the whole process. `fill` belongs to the thread of the loop; any thread may `release`."""

    def __init__(self) -> None:
        self._wanted = 0  # None in a process that is not a broker's own.
        self._held: list[int] = []

    def keep(self, count: int) -> None:
        """Hold `count` descriptors from now on, or as many as there are."""
        self._wanted = count
        while len(self._held) > count and self.release():
            pass
        self.fill()

    def fill(self) -> bool:
        """Take back what was released; False if there are not enough descriptors for that."""
        while len(self._held) < self._wanted:
            try:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            except OSError:
                return False
        return True

    def lend(self) -> None:
        """Leave a few descriptors free until the next `fill`."""
        for _ in range(LENT_MAX):
            self.release()

    def release(self) -> bool:
        """Give one up; False if none is held."""
        try:
            os.close(self._held.pop())
        except IndexError:
            return False
        return True


RESERVE: Final = Reserve()


def opened(
    call: Callable[Arguments, Opened], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Opened:
    """`call`, which opens a descriptor; with one of the reserve if there is no other."""
    while True:
        try:
            return call(*args, **kwargs)
        except OSError as error:
            if error.errno not in SHORT or not RESERVE.release():
                raise
