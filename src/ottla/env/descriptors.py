"""Reserved file descriptors, so that connections never take the last ones of a process.

A broker without free descriptors could neither roll a segment, nor open one, nor connect to another
broker. So it holds some in reserve. Opening a log's file or connecting to a peer takes one of these
if no other is free. The listener accepts no connection until the reserve is full again; while it
waits, a few stay free for files opened elsewhere: the import of a handler on its first request,
name resolution.
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
    """One per process. Call `fill` on the loop's thread; any thread may `release`."""

    def __init__(self) -> None:
        self._wanted = 0  # Zero in a process that is not a broker.
        self._held: list[int] = []

    def keep(self, count: int) -> None:
        """Reserve `count` descriptors from now on, or as many as possible."""
        self._wanted = count
        while len(self._held) > count and self.release():
            pass
        self.fill()

    def fill(self) -> bool:
        """Refill the reserve; False if there are not enough descriptors."""
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
        """Release one; False if none is held."""
        try:
            os.close(self._held.pop())
        except IndexError:
            return False
        return True


RESERVE: Final = Reserve()


def opened(
    call: Callable[Arguments, Opened], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Opened:
    """Run `call`, which opens a descriptor; takes one from the reserve if no other is free."""
    while True:
        try:
            return call(*args, **kwargs)
        except OSError as error:
            if error.errno not in SHORT or not RESERVE.release():
                raise
