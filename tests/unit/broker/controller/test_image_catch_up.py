"""A change that was passed on to the controller is in the image of the broker that answers it."""

from typing import Any

import pytest

from ottla.broker.controller.image_catch_up import WAIT_SECONDS_MAX
from ottla.metadata.image.cluster import TOPIC_RESOURCE
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import (
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
)
from tests.unit.broker.quorum_cluster import Cluster, Node, cluster_of

WAIT_MS_MAX = WAIT_SECONDS_MAX * 1000
ROUNDS = 20


def create(name: str) -> create_topics.Request:
    return create_topics.Request([create_topics.CreatableTopic(name, 1, 1)])


def grow(name: str, count: int) -> create_partitions.Request:
    return create_partitions.Request([create_partitions.CreatePartitionsTopic(name, count, None)])


def alter(name: str, key: str, value: str) -> incremental_alter_configs.Request:
    config = incremental_alter_configs.AlterableConfig(key, 0, value)
    resource = incremental_alter_configs.AlterConfigsResource(TOPIC_RESOURCE, name, [config])
    return incremental_alter_configs.Request([resource])


def delete(name: str) -> delete_topics.Request:
    return delete_topics.Request([delete_topics.DeleteTopicState(name)])


@pytest.mark.parametrize("seed", range(3))
def test_follower_has_each_kind_of_change_in_its_image_when_it_answers(seed: int) -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        cluster.pass_ms(1000 + 137 * seed)
        for follower in cluster.followers:
            for number in range(ROUNDS):
                _check_one_topic(cluster, follower, f"topic-{follower.number}-{number}")


def _check_one_topic(cluster: Cluster, follower: Node, name: str) -> None:
    topics = follower.broker.image.topics_by_name
    assert follower.ask(create(name)).topics[0].error_code == 0
    assert name in topics
    assert follower.ask(grow(name, 3)).results[0].error_code == 0
    assert len(topics[name].partitions) == 3
    assert follower.ask(alter(name, "retention.ms", "77000")).responses[0].error_code == 0
    assert _config(follower, name) == {"retention.ms": "77000"}
    assert follower.ask(delete(name)).responses[0].error_code == 0
    assert name not in topics
    cluster.pass_ms(3)


def _config(node: Node, name: str) -> Any:  # noqa: ANN401
    return dict(node.broker.image.config_of(TOPIC_RESOURCE, name))


def test_follower_that_cannot_catch_up_answers_after_the_longest_wait() -> None:
    """The disk of its metadata log is full: the others have decided without it."""
    with cluster_of(3) as cluster:
        cluster.start()
        follower = cluster.followers[0]
        follower.disk.capacity_bytes = 0
        before = cluster.clock.monotonic()
        assert follower.ask(create("topic")).topics[0].error_code == 0
        assert "topic" not in follower.broker.image.topics_by_name
        waited_ms = cluster.clock.monotonic() - before
        assert WAIT_MS_MAX <= waited_ms < WAIT_MS_MAX + 1000


def test_change_is_in_the_image_when_the_controller_dies_during_the_request() -> None:
    with cluster_of(3) as cluster:
        cluster.start()
        follower = cluster.followers[0]
        asked = cluster.loop.create_task(follower.broker.quorum.requests.submit(create("topic")))
        cluster.until(lambda: "topic" in cluster.leader.broker.image.topics_by_name)
        cluster.leader.kill()
        assert cluster.run(asked).topics[0].error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS)
        assert "topic" in follower.broker.image.topics_by_name
