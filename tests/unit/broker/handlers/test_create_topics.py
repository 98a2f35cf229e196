import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import create_topics as wire
from tests.unit.broker.serving import CONTROLLER, LISTENER, serving


@pytest.mark.parametrize("version", range(2, 8))
def test_a_confirmed_topic_can_be_written_in_every_version(version: int) -> None:
    with serving() as world:
        topic = wire.CreatableTopic("t", 3, 1)
        (result,) = world.client().ask(wire.Request([topic]), version).topics
        assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
        assert world.partition("t", 2).log.end_offset == 0
        if version >= 5:
            assert (result.num_partitions, result.replication_factor) == (3, 1)
            assert {"retention.ms", "cleanup.policy"} <= {c.name for c in result.configs}
        if version >= 7:
            assert result.topic_id == world.broker.image.topics_by_name["t"].id


def test_it_is_there_after_a_restart() -> None:
    with serving() as world:
        topic_id = world.topic("t", 2, retention_ms=5000)
        world.restart()
        topic = world.broker.image.topics_by_name["t"]
        assert (topic.id, len(topic.partitions)) == (topic_id, 2)
        assert world.broker.image.config_of(2, "t") == {"retention.ms": "5000"}
        assert world.partition("t", 1).log.end_offset == 0


@pytest.mark.parametrize("listener", [LISTENER, CONTROLLER])
def test_brokers_and_controllers_refuse_alike(listener: str) -> None:
    with serving() as world:
        world.topic("t")
        topic = wire.CreatableTopic("t", 1, 1)
        (result,) = world.client(listener).ask(wire.Request([topic])).topics
        assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert result.error_message == "Topic 't' already exists."


def test_a_request_too_large_for_one_decision_fails_as_a_whole() -> None:
    with serving() as world:
        topics = [wire.CreatableTopic(name, 6000, 1) for name in ("a", "b")]
        results = world.client().ask(wire.Request(topics)).topics
        assert {result.error_code for result in results} == {ErrorCode.POLICY_VIOLATION}
        assert not world.broker.image.topics_by_name
