"""A Spark session with the settings that Python sources and sinks need.

A plain session works too, but slower. The caller's settings take precedence.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.spark.sessions.spark_home import use_light_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Read by our readers in the Python workers, which inherit the environment of the JVM: a data source
# cannot see the session's settings.
PUSHDOWN_VARIABLE = "OTTLA_SPARK_FILTER_PUSHDOWN"
PUSHDOWN_SETTING = "spark.sql.python.filterPushdown.enabled"
THREADS_VARIABLE = "OMP_NUM_THREADS"
BOOTSTRAP_SETTING = "spark.ottla.bootstrap.servers"
SHUFFLE_SETTING = "spark.sql.shuffle.partitions"
LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,.*)?\])?")

FAST = {
    # Only this value disables the counting of bytes per row, which makes every Python sink 12 times
    # slower for rows with headers.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # Between Spark and its Python workers: a fifth less CPU per row than loopback TCP.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "ottla.spark.python_daemon",
}
SETTINGS = {
    **FAST,
    PUSHDOWN_SETTING: "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}


def session(
    name: str = "ottla",
    cores: int | str = "*",
    *,
    master: str | None = None,
    bootstrap: str | None = None,
    **conf: Any,  # noqa: ANN401  Whatever Spark takes.
) -> "SparkSession":
    """A session on this machine, or on the cluster `master`; the running one, if there is one.

    `bootstrap` are the brokers of writers that name none: `to_log`, `reprocess`.
    `conf` are Spark's settings with underscores for dots where that is unambiguous, or given as
    `**{"spark.sql.shuffle.partitions": 2}`.
    """
    # Spark would use the first `python3` on the path, which may lack this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    given = {setting_name(key): _text(value) for key, value in conf.items()}
    if bootstrap is not None:
        given[BOOTSTRAP_SETTING] = bootstrap
    # A reader that accepts filters while the setting is off would be refused.
    os.environ[PUSHDOWN_VARIABLE] = given.get(PUSHDOWN_SETTING, SETTINGS[PUSHDOWN_SETTING])
    use_light_home()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    chosen = master or given.get("spark.master")
    chosen = chosen or os.environ.get("SPARK_MASTER") or f"local[{cores}]"
    builder = builder.master(chosen)
    for key, value in {**SETTINGS, **shuffle_settings(chosen), **given}.items():
        builder = builder.config(key, value)
    with _few_threads():
        return builder.getOrCreate()


@contextmanager
def _few_threads() -> Iterator[None]:
    """Limit the threads of numpy while the JVM starts, whose environment planning processes
    inherit.

    Each of them loads numpy, which would start a spinning thread per core for linear algebra: a
    tenth of a second of CPU for every stream. Tasks get Spark's own setting, one thread per core of
    the task.
    """
    if THREADS_VARIABLE in os.environ:
        yield
        return
    os.environ[THREADS_VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[THREADS_VARIABLE]


def shuffle_settings(master: str) -> dict[str, str]:
    """On one machine, a partition per core: each of Spark's 200 would be a task of its own."""
    found = LOCAL.fullmatch(master)
    if found is None:
        return {}
    cores = found[1] or "1"
    return {SHUFFLE_SETTING: str(os.cpu_count() or 1) if cores == "*" else cores}


def setting_name(key: str) -> str:
    """`spark_ui_enabled` is `spark.ui.enabled`; a name with dots is unchanged."""
    return key if "." in key else key.replace("_", ".")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
