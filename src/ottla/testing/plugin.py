"""The pytest plugin: a broker per test, `ottla_broker`, or per run, `ottla_broker_session`.

Installed with Ottla and so loaded in every test run there; it imports the broker only when a test
asks for it. Each worker of pytest-xdist is a process with fixtures, and brokers, of its own.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ottla.testing.broker import Broker


@pytest.fixture
def ottla_broker() -> Iterator["Broker"]:
    """A real Kafka-protocol broker, empty, for this test alone."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def ottla_broker_session() -> Iterator["Broker"]:
    """A real Kafka-protocol broker for all tests of this run; give topics names of their own."""
    from ottla.testing.broker import Broker

    with Broker() as broker:
        yield broker
