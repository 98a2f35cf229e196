"""DescribeQuorum: a quorum of one leads itself and is always caught up."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_quorum as wire
from tests.unit.broker.serving import CONTROLLER, serving


def asking(topic: str = "__cluster_metadata", *partitions: int) -> wire.Request:
    parts = [wire.RequestPartitionData(index) for index in partitions or (0,)]
    return wire.Request([wire.RequestTopicData(topic, parts)])


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("listener", ["PLAINTEXT", CONTROLLER])
def test_the_only_voter_leads(version: int, listener: str) -> None:
    with serving() as world:
        answer = world.client(listener).ask(asking(), version)
        [part] = answer.topics[0].partitions
        assert (answer.error_code, part.error_code) == (0, 0)
        assert (part.leader_id, part.leader_epoch) == (1, world.broker.quorum.leader_epoch)
        [voter] = part.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (1, part.high_watermark)
        assert part.observers == []
        if version >= 1:
            assert voter.last_fetch_timestamp == voter.last_caught_up_timestamp == world.now
        if version >= 2:
            assert voter.replica_directory_id == world.broker.quorum.identity.directory_id
            [node] = answer.nodes
            assert [listener.name for listener in node.listeners] == ["CONTROLLER"]


def test_the_log_grows_and_a_restart_begins_a_new_epoch() -> None:
    with serving() as world:
        before = world.client().ask(asking()).topics[0].partitions[0]
        world.topic("t")
        after = world.client().ask(asking()).topics[0].partitions[0]
        assert after.high_watermark > before.high_watermark
        world.restart()
        again = world.client().ask(asking()).topics[0].partitions[0]
        assert again.leader_epoch > after.leader_epoch


@pytest.mark.parametrize("request_", [asking("t"), asking("__cluster_metadata", 1)])
def test_other_partitions_have_no_quorum(request_: wire.Request) -> None:
    with serving() as world:
        world.topic("t")
        [part] = world.client().ask(request_).topics[0].partitions
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert part.current_voters == []
