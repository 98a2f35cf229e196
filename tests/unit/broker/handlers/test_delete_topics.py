"""DeleteTopics through a broker: by name and by id, and where it is not allowed."""

import pytest

from ottla.client.dialer import Dialer
from ottla.env.network import Address
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import delete_topics as wire
from tests.unit.broker.quorum_cluster import Node, cluster_of
from tests.unit.broker.requests import write
from tests.unit.broker.serving import serving

BY_STATE_SINCE = 6


def naming(*names: str, version: int = 6) -> wire.Request:
    if version >= BY_STATE_SINCE:
        return wire.Request([wire.DeleteTopicState(name) for name in names], timeout_ms=1000)
    return wire.Request(topic_names=list(names), timeout_ms=1000)


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_is_gone_in_every_version(version: int) -> None:
    with serving() as world:
        topic_id = world.topic("t", 2)
        world.topic("kept")
        write(world, b"a")
        answer = world.client().ask(naming("t", "unknown", version=version), version)
        codes = {result.name: result.error_code for result in answer.responses}
        assert codes == {"t": 0, "unknown": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert list(world.broker.image.topics_by_name) == ["kept"]
        assert len(world.broker.partitions) == 1
        if version >= 6:
            assert topic_id in {result.topic_id for result in answer.responses}


def test_a_topic_is_gone_by_its_id() -> None:
    with serving() as world:
        topic_id = world.topic("t")
        states = [wire.DeleteTopicState(None, topic_id), wire.DeleteTopicState(None, b"?" * 16)]
        answer = world.client().ask(wire.Request(states, timeout_ms=1000))
        codes = {result.name: result.error_code for result in answer.responses}
        assert codes == {"t": 0, None: ErrorCode.UNKNOWN_TOPIC_ID}


@pytest.mark.parametrize("version", range(1, 7))
def test_any_node_deletes_a_topic_in_every_version(version: int) -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        assert cluster.leader.create("t") == 0
        answer = cluster.run(ask_in(cluster.followers[0], naming("t", version=version), version))
        codes = {result.name: result.error_code for result in answer.responses}
        assert codes == {"t": 0}
        assert cluster.leader.broker.image.topics_by_name == {}


async def ask_in(node: Node, request: wire.Request, version: int) -> wire.Response:
    """As a client does that knows no newer version."""
    address = Address(node.host, 9092)
    network = node.broker.env.network
    connection = await Dialer("old").dial(network, address, timeout_ms=1000)
    try:
        return await connection.ask(request, wire.Response, timeout_ms=1000, version_max=version)
    finally:
        connection.close()


def test_a_topic_stays_gone_after_a_power_cut() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        world.delete("t")
        world.lose_power()
        assert world.broker.image.topics_by_name == {}
        world.topic("t")
        assert write(world, b"new") == 0


@pytest.mark.parametrize("version", range(1, 7))
def test_where_deleting_is_switched_off_nothing_is_deleted(version: int) -> None:
    with serving(delete_topic_enable="false") as world:
        world.topic("t")
        answer = world.client().ask(naming("t", version=version), version)
        code = ErrorCode.TOPIC_DELETION_DISABLED if version >= 3 else ErrorCode.INVALID_REQUEST
        assert [result.error_code for result in answer.responses] == [code]
        assert "t" in world.broker.image.topics_by_name
