import pytest

from ottla.metadata.cluster import METADATA_TOPIC
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_quorum as wire
from tests.unit.broker.serving import CONTROLLER, LISTENER, serving


def request(topic: str = METADATA_TOPIC, partition: int = 0) -> wire.Request:
    return wire.Request([wire.RequestTopicData(topic, [wire.RequestPartitionData(partition)])])


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("listener", [LISTENER, CONTROLLER])
def test_the_quorum_of_one_leads_itself(listener: str, version: int) -> None:
    with serving() as world:
        response = world.client(listener).ask(request(), version)
        end = world.broker.image.offset + 1
        directory_id = world.broker.quorum.identity.directory_id
    partition = response.topics[0].partitions[0]
    assert (response.error_code, partition.error_code) == (0, 0)
    assert (partition.leader_id, partition.leader_epoch) == (1, 1)
    assert partition.high_watermark == end
    (voter,) = partition.current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, end)
    if version == 2:
        assert voter.replica_directory_id == directory_id
        assert [node.node_id for node in response.nodes] == [1]


@pytest.mark.parametrize("asked", [request("t"), request(partition=1)])
def test_other_topics_have_no_quorum(asked: wire.Request) -> None:
    with serving() as world:
        response = world.client().ask(asked)
    (partition,) = response.topics[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
