"""One PostgreSQL and one broker for all tests, and a database of its own for each."""

from collections.abc import Iterator
from itertools import count

import pytest

from ottla.testing import Broker
from tests.cdc.tail_process import World
from tests.postgres import PostgresServer

NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def shared_broker() -> Iterator[Broker]:
    with Broker(process=True) as broker:
        yield broker


@pytest.fixture
def world(server: PostgresServer, shared_broker: Broker) -> Iterator[World]:
    world = World(server, shared_broker, f"shop{next(NUMBERS)}")
    yield world
    world.close()
