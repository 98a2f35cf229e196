"""Spark's daemon of Python workers, with quiet exits and less garbage collection.

spark.python.daemon.module = ottla.spark.python_daemon

Spark runs the garbage collector after each task of a worker, which mostly traverses its modules: a
tenth of the time of a task that reads 150 MB. So these are frozen after the first task.

Spark closes the socket of a worker that was idle for a minute. Over TCP the worker's last write is
lost silently; over Unix sockets, which are faster, it fails, and would print a traceback on the
user's terminal. Spark's planning has its own daemons, for which `end_in_silence` is called when
they load the format.
"""

import gc
import os
import sys
from collections.abc import Callable
from types import ModuleType

DAEMON = "pyspark.daemon"


def end_in_silence(daemon: ModuleType) -> None:
    """Make the workers forked by this daemon end quietly when Spark has closed their socket."""
    serve: Callable[..., int] = daemon.worker

    def worker(*arguments: object) -> int:
        try:
            return serve(*arguments)
        except BrokenPipeError:
            os._exit(0)

    daemon.worker = worker  # type: ignore[attr-defined]  # It is looked up for each task.


def set_modules_aside(daemon: ModuleType) -> None:
    """Make each worker freeze the objects loaded by its first task."""
    serve: Callable[..., int] = daemon.worker
    is_first = True

    def worker(*arguments: object) -> int:
        nonlocal is_first
        status = serve(*arguments)
        if is_first:
            is_first = False
            gc.collect()
            gc.freeze()
        return status

    daemon.worker = worker  # type: ignore[attr-defined]


def end_in_silence_here() -> None:
    """For this process, if it is a worker of Spark's own daemon."""
    main = sys.modules["__main__"]
    if getattr(main.__spec__, "name", None) == DAEMON and not hasattr(main, "is_silent"):
        main.is_silent = True  # type: ignore[attr-defined]
        end_in_silence(main)


if __name__ == "__main__":
    from pyspark import daemon

    set_modules_aside(daemon)
    end_in_silence(daemon)
    daemon.manager()
