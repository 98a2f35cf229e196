"""Work on a thread of its own that runs only while the loop waits for it.

The loop advances the work from one disk operation to a later one, and runs other callbacks in
between, so that a worker and the loop interleave at points which the seed chooses. Exactly one of
the threads runs at any time: the same seed gives the same interleaving.
"""

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar

from ottla.simulation.world.disk import Crashed

Value = TypeVar("Value")


class SteppedWork(Generic[Value]):
    current: "SteppedWork[object] | None" = None  # The work that is being advanced.

    def __init__(self, work: Callable[..., Value], arguments: tuple[object, ...]) -> None:
        self._work = work
        self._arguments = arguments
        self._may_run = threading.Semaphore(0)
        self._has_paused = threading.Semaphore(0)
        self._is_done = self._is_abandoned = False
        self._value: Value
        self._error: BaseException | None = None
        context = copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), daemon=True)
        self._thread.start()

    def advance(self) -> bool:
        """Run to the next pause; True if the work has ended."""
        previous, SteppedWork.current = SteppedWork.current, self  # type: ignore[assignment]
        self._may_run.release()
        self._has_paused.acquire()
        SteppedWork.current = previous
        return self._is_done

    def pause(self) -> None:
        """Called by the work: let the loop go on. Raises Crashed if the work was abandoned."""
        if self._is_abandoned:
            raise Crashed
        self._has_paused.release()
        self._may_run.acquire()
        if self._is_abandoned:
            raise Crashed

    def result(self) -> Value:
        """The value, or the error, of work that has ended."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value

    def abandon(self) -> None:
        """End the thread; does nothing if the work has ended."""
        self._is_abandoned = True
        while not self._is_done:
            self.advance()
        self._thread.join()

    def _run(self) -> None:
        self._may_run.acquire()
        try:
            if not self._is_abandoned:
                self._value = self._work(*self._arguments)
        except BaseException as error:  # noqa: BLE001  The loop's thread raises it.
            self._error = error
        self._is_done = True
        self._has_paused.release()
