"""Two Ottla nodes and one Apache Kafka share a quorum: each votes, follows and leads the others.

So a cluster can move from one to the other node by node.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.client.admin import Operation, ResourceType
from ottla.client.blocking import Client
from ottla.client.dialer import Dialer
from ottla.client.errors import ClientError, Refused
from ottla.client.session import parse_addresses
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess
from tests.process.confirmed_changes import stale_answers
from tests.process.quorum_nodes import Nodes

KAFKA = 3
# Levels that both serve.
LEVELS = tuple(
    option
    for name in ("group", "transaction", "eligible.leader.replicas", "share", "streams")
    for option in ("-f", f"{name}.version=0")
)
WAIT_SECONDS_MAX = 60


def mixed(directory: Path) -> Nodes:
    nodes = Nodes(directory)
    ours = nodes.all[KAFKA]
    theirs = BrokerProcess(ApacheKafka(LEVELS), directory / "kafka", ours.settings)
    theirs.port, theirs.controller_port = ours.port, ours.controller_port
    theirs.bootstrap = ours.bootstrap
    theirs.settings["log.dirs"] = str(theirs.data_directory)
    nodes.all[KAFKA] = theirs
    return nodes


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        try:
            if holds():
                return
        except ClientError:
            pass
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.1)


def create(nodes: Nodes, number: int, name: str) -> None:
    with Client(nodes.all[number].bootstrap) as client:
        client.run(client.admin.create_topic(name, partitions=1, replication_factor=2))


def changes_that_are_stale(nodes: Nodes, number: int) -> list[str]:
    (address,) = parse_addresses(nodes.all[number].bootstrap)
    connection = Dialer("test").dial_blocking(address, timeout_ms=20_000)
    stale = [answer for number in range(25) for answer in stale_answers(connection, number)]
    connection.close()
    return stale


@pytest.mark.slow
def test_each_of_them_leads_the_others(tmp_path: Path) -> None:
    nodes = mixed(tmp_path)
    try:
        nodes.start()
        create(nodes, 1, "first")
        known = ["first"]
        led = set()
        for round_ in range(12):
            leader = nodes.leader()
            led.add(leader == KAFKA)
            if len(led) == 2:
                break
            other = 1 if leader == 2 else 2
            nodes.all[leader].stop()  # The next one may be either.
            name = f"round{round_}"
            create(nodes, other, name)
            known.append(name)
            until(lambda other=other, leader=leader: nodes.leader(other) != leader)  # type: ignore[misc]
            nodes.start(leader)
        assert led == {True, False}, "each kind has led"
        for number in nodes.all:
            until(lambda number=number: nodes.topics(number) == set(known))  # type: ignore[misc]
    finally:
        for node in nodes.all.values():
            node.kill()


@pytest.mark.slow
def test_a_broker_of_either_kind_passes_requests_on_to_a_controller_of_the_other(
    tmp_path: Path,
) -> None:
    """Both do so in an Envelope."""
    nodes = mixed(tmp_path)
    try:
        nodes.start()
        for leads, asked in ((False, KAFKA), (True, 1)):
            while ((leader := nodes.leader()) == KAFKA) is not leads:
                nodes.all[leader].stop()
                until(lambda leader=leader: nodes.leader(1 if leader != 1 else 2) != leader)  # type: ignore[misc]
                nodes.start(leader)
            name = f"asked-of-{asked}"
            create(nodes, asked, name)
            with Client(nodes.all[asked].bootstrap) as client:
                client.run(client.admin.create_partitions(name, 3))
                change = [(Operation.SET, "retention.ms", "123456")]
                client.run(client.admin.alter_configs(ResourceType.TOPIC, name, change))
                with pytest.raises(Refused, match="already exists"):
                    client.run(client.admin.create_topic(name, partitions=1))
            for number in nodes.all:
                until(lambda number=number, name=name: name in nodes.topics(number))  # type: ignore[misc]
                with Client(nodes.all[number].bootstrap) as client:
                    configs = client.run(client.admin.describe_configs(ResourceType.TOPIC, name))
                assert [c.value for c in configs if c.name == "retention.ms"] == ["123456"]
        assert changes_that_are_stale(nodes, 1) == []  # Kafka decides them.
    finally:
        for node in nodes.all.values():
            node.kill()
