"""The way to the active controller, while it changes or is not there."""

import pytest

from ottla.broker.controller.channel import says_not_controller
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import (
    broker_heartbeat,
    create_topics,
    describe_quorum,
    unregister_broker,
)
from tests.unit.broker.quorum_cluster import cluster_of


def test_a_request_finds_the_controller_wherever_it_goes() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        asker = cluster.followers[0]
        assert asker.create("a") == 0
        cluster.leader.stop()
        assert asker.create("b") == 0


def test_what_the_controller_refuses_comes_back_as_it_would_from_beside_us() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        for node in cluster.nodes.values():
            with pytest.raises(Refusal) as refused:
                node.ask(unregister_broker.Request(77))
            assert refused.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_controller_that_stalls_holds_up_nobody_once_there_is_another() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.pass_ms(1000)
        stalled, asker = cluster.leader, cluster.followers[0]
        cluster.network.clog(stalled.host, 20_000_000_000)
        before = cluster.clock.monotonic()
        assert asker.create("t") == 0
        assert cluster.clock.monotonic() - before < 6000  # Not the ten seconds of a request.


def test_without_any_controller_it_ends_in_time() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        asker, other = cluster.followers
        cluster.leader.kill()
        other.kill()
        with pytest.raises(Refusal) as refused:
            asker.create("t")
        assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT


def test_not_being_the_controller_is_found_wherever_an_answer_says_it() -> None:
    code = ErrorCode.NOT_CONTROLLER
    topic = create_topics.CreatableTopicResult(error_code=code)
    assert says_not_controller(create_topics.Response(topics=[topic]))
    assert says_not_controller(broker_heartbeat.Response(error_code=code))
    part = describe_quorum.ResponsePartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    topic_of_part = describe_quorum.ResponseTopicData(partitions=[part])
    assert says_not_controller(describe_quorum.Response(topics=[topic_of_part]))
    assert not says_not_controller(create_topics.Response())
    assert not says_not_controller(broker_heartbeat.Response(error_code=77))
