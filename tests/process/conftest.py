"""Brokers of a test's own, each a real process that is gone when the test ends."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conformance.broker_process import BrokerProcess, Ottla

NewBroker = Callable[..., BrokerProcess]


@pytest.fixture
def new_broker(tmp_path: Path) -> Iterator[NewBroker]:
    """Makes brokers that are not started yet; settings as in `server.properties`."""
    made: list[BrokerProcess] = []

    def make(directory: Path | None = None, **settings: str) -> BrokerProcess:
        named = {key.replace("_", "."): value for key, value in settings.items()}
        made.append(BrokerProcess(Ottla(), directory or tmp_path / f"broker{len(made)}", named))
        return made[-1]

    yield make
    for broker in made:
        broker.kill()
