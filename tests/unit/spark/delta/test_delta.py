import re
from pathlib import Path

import pytest

from ottla.spark.delta.delta import INTERRUPTED, _absolute, is_interruption

# What Spark 4 looks for, to tell that a query it stopped ended well (StreamExecution.PROXY_ERROR).
PROXY_ERROR = re.compile(
    r"py4j.protocol.Py4JJavaError: An error occurred while calling"
    r"((.|\r\n|\r|\f)*)(java.lang.InterruptedException|java.io.InterruptedIOException)"
)


def test_spark_knows_that_it_stopped_the_query() -> None:
    assert PROXY_ERROR.search(f"Traceback ...\nottla.spark.errors.SparkError: {INTERRUPTED}")
    assert is_interruption(Exception("... java.lang.InterruptedException\n at ..."))
    assert is_interruption(Exception("[SPARK_JOB_CANCELLED] Job 3 cancelled"))
    assert not is_interruption(Exception("disk full"))


def test_a_relative_path_is_that_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _absolute("lake/orders") == str(tmp_path / "lake/orders")
    assert _absolute(Path("lake")) == str(tmp_path / "lake")
    assert _absolute("s3://lake/orders") == "s3://lake/orders"
