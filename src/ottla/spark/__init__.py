"""Ottla on Spark, with pip and no jar: a source, sinks, tables and a session that is set up well.

    import ottla.spark as ot

    spark = ot.session("orders", cores=2)
    rows = (spark.readStream.format("ottla")
            .option("kafka.bootstrap.servers", "localhost:9092")
            .option("subscribe", "orders").load())

Needs the extra `ottla[spark]` and Java 17. Nothing is imported before it is used.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.spark.dead_letters import Split as Split
    from ottla.spark.dead_letters import split as split
    from ottla.spark.delta.delta import to_delta as to_delta
    from ottla.spark.errors import BadOption as BadOption
    from ottla.spark.errors import DataLoss as DataLoss
    from ottla.spark.errors import SparkError as SparkError
    from ottla.spark.errors import Unreadable as Unreadable
    from ottla.spark.reprocessing import read_dead_letters as read_dead_letters
    from ottla.spark.reprocessing import reprocess as reprocess
    from ottla.spark.sessions.session import session as session
    from ottla.spark.sink.query import to_log as to_log

_HOMES = {
    "Split": "ottla.spark.dead_letters",
    "split": "ottla.spark.dead_letters",
    "to_delta": "ottla.spark.delta.delta",
    "to_log": "ottla.spark.sink.query",
    "reprocess": "ottla.spark.reprocessing",
    "read_dead_letters": "ottla.spark.reprocessing",
    "BadOption": "ottla.spark.errors",
    "DataLoss": "ottla.spark.errors",
    "SparkError": "ottla.spark.errors",
    "Unreadable": "ottla.spark.errors",
    "session": "ottla.spark.sessions.session",
}

__all__ = [
    "BadOption",
    "DataLoss",
    "SparkError",
    "Split",
    "Unreadable",
    "read_dead_letters",
    "reprocess",
    "session",
    "split",
    "to_delta",
    "to_log",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = import_module(_HOMES[name])
    except ModuleNotFoundError as failure:
        if failure.name not in ("numpy", "pyarrow", "pyspark", "deltalake"):
            raise
        sentence = f"{failure.name} is not installed: pip install 'ottla[spark]'"
        raise ModuleNotFoundError(sentence, name=failure.name) from failure
    return getattr(home, name)
