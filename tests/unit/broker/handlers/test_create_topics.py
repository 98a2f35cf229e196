"""CreateTopics through a broker: what is confirmed can be written to, and what is refused."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import create_topics as wire
from tests.unit.broker.requests import write
from tests.unit.broker.serving import CONTROLLER, World, serving


def one(
    world: World, topic: wire.CreatableTopic, version: int = 7, *, validate_only: bool = False
) -> wire.CreatableTopicResult:
    request = wire.Request([topic], timeout_ms=1000, validate_only=validate_only)
    [result] = world.client().ask(request, version).topics
    assert result.name == topic.name
    return result


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_made_and_written_to_at_once(version: int) -> None:
    with serving() as world:
        config = wire.CreatableTopicConfig("retention.ms", "1000")
        made = one(world, wire.CreatableTopic("t", 3, 1, configs=[config]), version)
        assert made.error_code == 0
        if version >= 5:
            assert (made.num_partitions, made.replication_factor) == (3, 1)
            assert {c.name: c.value for c in made.configs}["retention.ms"] == "1000"
        if version >= 7:
            assert made.topic_id == world.broker.image.topics_by_name["t"].id
        assert write(world, b"a", partition=2) == 0
        assert world.partition().log.config.retention_ms == 1000


def test_defaults_are_the_brokers() -> None:
    with serving(num_partitions=5) as world:
        assert one(world, wire.CreatableTopic("t", -1, -1)).num_partitions == 5
        assert len(world.broker.partitions) == 5


def test_partitions_may_be_assigned_by_hand() -> None:
    with serving() as world:
        assignments = [wire.CreatableReplicaAssignment(index, [1]) for index in range(2)]
        assert one(world, wire.CreatableTopic("t", -1, -1, assignments)).error_code == 0
        elsewhere = [wire.CreatableReplicaAssignment(0, [2])]
        refused = one(world, wire.CreatableTopic("u", -1, -1, elsewhere))
        assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_validating_makes_nothing() -> None:
    with serving() as world:
        made = one(world, wire.CreatableTopic("t", 2, 1), validate_only=True)
        assert (made.error_code, made.num_partitions) == (0, 2)
        assert world.broker.image.topics_by_name == {}
        assert [name for name in world.disk.list("/data") if name.startswith("t-")] == []


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (wire.CreatableTopic("a/b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (wire.CreatableTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (wire.CreatableTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (wire.CreatableTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wire.CreatableTopic("t", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (wire.CreatableTopic("exists", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (
            wire.CreatableTopic("t", 1, 1, configs=[wire.CreatableTopicConfig("no.such", "1")]),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            wire.CreatableTopic(
                "t", 1, 1, configs=[wire.CreatableTopicConfig("retention.ms", "x")]
            ),
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_what_cannot_be_is_refused(topic: wire.CreatableTopic, code: ErrorCode) -> None:
    with serving() as world:
        world.topic("exists")
        refused = one(world, topic)
        assert refused.error_code == code
        assert refused.error_message
        assert list(world.broker.image.topics_by_name) == ["exists"]


def test_one_name_twice_is_refused_both_times() -> None:
    with serving() as world:
        twice = wire.Request([wire.CreatableTopic("t", 1, 1), wire.CreatableTopic("t", 1, 1)])
        answer = world.client().ask(twice)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_REQUEST}
        assert world.broker.image.topics_by_name == {}


def test_a_restart_remembers_topics_and_their_configs() -> None:
    with serving() as world:
        topic_id = world.topic("t", 2, max_message_bytes=1234)
        for again in (world.restart, world.lose_power):
            again()
            assert world.partition("t", 1).topic_id == topic_id
            assert world.partition("t", 1).policy.message_bytes_max == 1234


def test_the_controllers_door_makes_topics_too() -> None:
    with serving() as world:
        request = wire.Request([wire.CreatableTopic("t", 1, 1)])
        assert world.client(CONTROLLER).ask(request).topics[0].error_code == 0
        assert write(world, b"a") == 0
