"""The pytest plugin: brokers and clusters per test, per module or per run.

Installed with Ottla and so loaded in every test run; it imports the broker only when a test
requests it. Each worker of pytest-xdist is a process with its own fixtures and brokers.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker
    from ottla.testing.cluster import Cluster

MARKER = "ottla"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "ottla(settings=None, **named): settings of ottla_broker or ottla_cluster in this test",
    )


@pytest.fixture
def ottla_broker(request: pytest.FixtureRequest) -> Iterator["Broker"]:
    """A real, empty Kafka-protocol broker for this test alone."""
    from ottla.testing.broker import Broker

    with Broker(**_marked(request)) as broker:
        yield broker


@pytest.fixture
def ottla_cluster(request: pytest.FixtureRequest) -> Iterator["Cluster"]:
    """Three real brokers for this test alone, each in a process of its own."""
    from ottla.testing.cluster import Cluster

    with Cluster(**_marked(request)) as cluster:
        yield cluster


@pytest.fixture
def ottla_broker_factory() -> Iterator[Callable[..., "Broker"]]:
    """Starts a broker with the arguments of `Broker`; all of them end with the test."""
    from ottla.testing.broker import Broker

    with ExitStack() as started:
        yield lambda *args, **named: started.enter_context(Broker(*args, **named))


@pytest.fixture(scope="module")
def ottla_broker_module() -> Iterator["Broker"]:
    """A real Kafka-protocol broker for all tests of a module; use unique topic names."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_broker_session() -> Iterator["Broker"]:
    """A real Kafka-protocol broker for all tests of this run; use unique topic names."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


def _marked(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The arguments of all markers of a test; the closest one wins."""
    arguments: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(MARKER))):
        arguments |= marker.kwargs
    return arguments
