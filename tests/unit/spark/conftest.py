"""A broker in this process, for what speaks to one."""

from collections.abc import Iterator

import pytest

from ottla.spark.source.idle_connections import close_idle
from ottla.testing import Broker


@pytest.fixture(autouse=True)
def _no_connection_outlives_its_test() -> Iterator[None]:
    yield
    close_idle()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Shared: a test names its own topics. Topics that are missing are not made."""
    with Broker(auto_create_topics_enable=False) as made:
        yield made
