"""Fixtures for tests that drive a broker process: `--against=ottla` (the default) or `kafka`."""

import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance import settling
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess, Flavour, Ottla

# The clients are others' code: a deprecation in them is no fault of ours, neither when they are
# imported nor when they run.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

HERE = Path(__file__).parent
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against",
        choices=("ottla", "kafka"),
        default="ottla",
        help="the broker to test: ours, or Apache Kafka as the reference",
    )


def pytest_configure(config: pytest.Config) -> None:
    settling.is_needed = config.getoption("--against", default="ottla") == "kafka"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="session")
def flavour(pytestconfig: pytest.Config) -> Flavour:
    return (
        ApacheKafka()
        if pytestconfig.getoption("--against", default="ottla") == "kafka"
        else Ottla()
    )


@pytest.fixture(scope="session")
def broker(flavour: Flavour, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests of the session; a test names its own topics."""
    process = BrokerProcess(flavour, tmp_path_factory.mktemp(flavour.name))
    process.start()
    yield process
    process.stop()


@pytest.fixture
def new_broker(flavour: Flavour, tmp_path: Path) -> Iterator[Callable[..., BrokerProcess]]:
    """Makes brokers of the test's own, not started yet, that are gone when it ends."""
    made: list[BrokerProcess] = []

    def make(settings: dict[str, str] | None = None) -> BrokerProcess:
        made.append(BrokerProcess(flavour, tmp_path / f"broker{len(made)}", settings))
        return made[-1]

    yield make
    for process in made:
        process.kill()


@pytest.fixture
def bootstrap(broker: BrokerProcess) -> str:
    return broker.bootstrap


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    return unique_name(request.node.name)


@pytest.fixture
def other_topic(request: pytest.FixtureRequest) -> str:
    return unique_name(request.node.name)


def unique_name(text: str) -> str:
    return f"{re.sub('[^A-Za-z0-9]+', '-', text)[:60]}-{next(_numbers)}"
