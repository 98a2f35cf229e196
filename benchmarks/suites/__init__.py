"""The benchmarks, one module each: `run(session)` measures, the docstring says what."""

from collections.abc import Callable
from importlib import import_module

from benchmarks.session import Session

NAMES = (
    *("small", "batches", "fetch", "partitions", "librdkafka", "java", "latency"),
    *("groups", "start", "memory", "idle", "cluster", "failover"),
    *("spark", "spark_kafka"),
)


def suite(name: str) -> Callable[[Session], None]:
    run: Callable[[Session], None] = import_module(f"benchmarks.suites.{name}").run
    return run


def summary(name: str) -> str:
    """The first sentence of a benchmark's docstring."""
    text = import_module(f"benchmarks.suites.{name}").__doc__ or ""
    return text.partition("\n\n")[0].replace("\n", " ")
