"""A change confirmed by a broker of a real cluster is there in that broker's next answer."""

import pytest

from ottla.client.dialer import Dialer
from ottla.client.session import parse_addresses
from ottla.testing import Cluster
from tests.process.confirmed_changes import stale_answers

ROUNDS = 50  # Of four changes each.


@pytest.mark.timeout(120)
def test_broker_that_is_not_the_controller_answers_with_its_own_confirmed_changes() -> None:
    with Cluster(brokers=3) as cluster:
        controller = cluster.controller()
        servers = dict(
            zip(cluster.node_ids, parse_addresses(cluster.bootstrap_servers), strict=True)
        )
        address = next(server for node, server in servers.items() if node != controller)
        connection = Dialer("test").dial_blocking(address, timeout_ms=20_000)
        stale = [fault for number in range(ROUNDS) for fault in stale_answers(connection, number)]
        connection.close()
        assert cluster.controller() == controller, "else nothing was passed on"
        assert stale == []
