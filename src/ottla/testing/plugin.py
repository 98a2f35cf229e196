"""The pytest plugin: a broker per test, `ottla_broker`, or per run, `ottla_broker_session`.

Installed with Ottla and so loaded in every test run; it imports the broker only when a test
requests it. Each worker of pytest-xdist is a process with its own fixtures and brokers.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


@pytest.fixture
def ottla_broker() -> Iterator["Broker"]:
    """A real, empty Kafka-protocol broker for this test alone."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_broker_session() -> Iterator["Broker"]:
    """A real Kafka-protocol broker for all tests of this run; use unique topic names."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker
