"""Logs, once per application, that its session lacks the settings for fast Python sources and
sinks.

A data source cannot see the session's settings, but its process inherits the environment that
`session` sets, or that Spark sets for Unix sockets.
"""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

from ottla.spark.sessions.session import FAST, PUSHDOWN_VARIABLE

log = logging.getLogger("ottla.spark")

SOCKETS_VARIABLE = "PYTHON_UNIX_DOMAIN_ENABLED"
DIRECTORIES_VARIABLE = "SPARK_LOCAL_DIRS"  # Per application; Spark removes them at its end.
MARK = "ottla-told"


def tell_once(environment: Mapping[str, str] = os.environ) -> None:
    """Called on the driver for each reader and writer; only the first call logs."""
    directory = environment.get(DIRECTORIES_VARIABLE, "").partition(",")[0]
    is_fast = environment.get(SOCKETS_VARIABLE, "").lower() == "true"
    if not directory or is_fast or PUSHDOWN_VARIABLE in environment:
        return
    try:
        (Path(directory) / MARK).touch(exist_ok=False)
    except OSError:
        return
    log.warning(
        "a session of ottla.spark.session() is faster: in one of your own, set %s",
        ", ".join(f"{name}={value}" for name, value in FAST.items()),
    )
