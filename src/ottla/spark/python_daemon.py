"""Spark's daemon of Python workers, whose workers end in silence when Spark lets them go.

    spark.python.daemon.module = ottla.spark.python_daemon

Spark closes the socket of a worker that was idle for a minute. Over TCP the worker's last words are
lost without notice; over Unix sockets, which are faster, it fails to say them, and would print a
traceback on the user's terminal. Spark's planning has daemons of its own, for which
`end_in_silence` is called when they load the format.
"""

import os
import sys
from collections.abc import Callable
from types import ModuleType

DAEMON = "pyspark.daemon"


def end_in_silence(daemon: ModuleType) -> None:
    """Let the workers that this daemon forks end quietly where nobody listens any more."""
    serve: Callable[..., int] = daemon.worker

    def worker(*arguments: object) -> int:
        try:
            return serve(*arguments)
        except BrokenPipeError:
            os._exit(0)

    daemon.worker = worker  # type: ignore[attr-defined]  # It is looked up for each task.


def end_in_silence_here() -> None:
    """For this process, if it is a worker of Spark's own daemon."""
    main = sys.modules["__main__"]
    if getattr(main.__spec__, "name", None) == DAEMON and not hasattr(main, "is_silent"):
        main.is_silent = True  # type: ignore[attr-defined]
        end_in_silence(main)


if __name__ == "__main__":
    from pyspark import daemon

    end_in_silence(daemon)
    daemon.manager()
