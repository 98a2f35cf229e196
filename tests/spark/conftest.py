"""One Spark session and one broker for all tests; a test names its own topics.

A session takes ten seconds to start, so it is shared. What needs a JVM of its own is marked
`own_jvm` and runs in `make test-spark`.
"""

import itertools
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.testing import Broker
from tests.conformance.apache_kafka import missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count(1)

# Every task may start a Python of its own: it should not have to compile what it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.setdefault("PYTHONPYCACHEPREFIX", str(Path(__file__).parents[2] / "build/pycache"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in item.path.parts:  # Spark's own Python is not free of warnings.
            for kind in ("DeprecationWarning", "ResourceWarning", "FutureWarning", "UserWarning"):
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{kind}"))


def need_java() -> None:
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        missing("Java 17 or newer is not installed, so Spark cannot run.")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Made by our own helper, as a user's would be."""
    need_java()
    from ottla.spark import session

    warehouse = tmp_path_factory.mktemp("spark")
    made = session(
        "tests",
        cores=2,
        **{
            "spark.ui.enabled": False,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(warehouse / "local"),
            "spark.sql.warehouse.dir": str(warehouse / "warehouse"),
        },
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A process beside the test, as a broker is in production."""
    with Broker(process=True, auto_create_topics_enable=False) as made:
        yield made


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses; the topic is not made."""
    return unique_name(request.node.name)


def unique_name(text: str) -> str:
    return f"{re.sub('[^A-Za-z0-9]+', '-', text)[:60]}-{next(_numbers)}"
