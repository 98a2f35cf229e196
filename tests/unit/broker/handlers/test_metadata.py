import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import metadata as wire
from tests.unit.broker.serving import CONTROLLER, World, serving

Topic = wire.MetadataRequestTopic
NOT_ASKED = -(1 << 31)


def ask(world: World, version: int, *topics: Topic, **more: bool) -> wire.Response:
    return world.client().ask(wire.Request(list(topics), **more), version)


def everything(world: World, version: int) -> wire.Response:
    return world.client().ask(wire.Request(None if version else []), version)


@pytest.mark.parametrize("version", range(14))
def test_all_topics_are_answered_in_every_version(version: int) -> None:
    with serving() as world:
        world.topic("a", 2)
        world.topic("b")
        response = everything(world, version)
    assert [(b.node_id, b.host, b.port) for b in response.brokers] == [(1, "broker", 9092)]
    assert {t.name: len(t.partitions) for t in response.topics} == {"a": 2, "b": 1}
    for topic in response.topics:
        for index, partition in enumerate(topic.partitions):
            assert (partition.partition_index, partition.error_code) == (index, 0)
            assert (partition.leader_id, partition.replica_nodes) == (1, [1])
            assert partition.isr_nodes == [1]
            assert partition.offline_replicas == []


def test_an_empty_list_asks_for_no_topic_since_version_one() -> None:
    with serving() as world:
        world.topic("a")
        assert ask(world, 1).topics == []


def test_topics_are_found_by_id() -> None:
    with serving() as world:
        topic_id = world.topic("a")
        response = ask(world, 12, Topic(topic_id, None), Topic(b"x" * 16, None))
    assert [(t.name, t.topic_id, t.error_code) for t in response.topics] == [
        ("a", topic_id, 0),
        (None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize("topic", [Topic(b"x" * 16, "a"), Topic(name=None)])
def test_ids_are_refused_before_version_twelve(topic: Topic) -> None:
    with serving() as world:
        response = ask(world, 11, topic)
    assert {t.error_code for t in response.topics} == {ErrorCode.INVALID_REQUEST}


def test_a_topic_that_is_asked_for_is_created_and_can_be_written_at_once() -> None:
    with serving(num_partitions=3) as world:
        (topic,) = ask(world, 13, Topic(name="new")).topics
        assert (topic.error_code, len(topic.partitions)) == (0, 3)
        assert world.partition("new", 2).log.end_offset == 0


@pytest.mark.parametrize(
    ("settings", "more"),
    [
        ({"auto_create_topics_enable": "false"}, {}),
        ({}, {"allow_auto_topic_creation": False}),
    ],
)
def test_it_is_unknown_where_creating_is_not_wanted(
    settings: dict[str, str], more: dict[str, bool]
) -> None:
    with serving(**settings) as world:
        (topic,) = ask(world, 13, Topic(name="new"), **more).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "new" not in world.broker.image.topics_by_name


def test_what_cannot_be_created_is_answered_as_unknown_or_invalid() -> None:
    with serving(default_replication_factor=2) as world:
        response = ask(world, 13, Topic(name="a"), Topic(name="a/b"), Topic(name=""))
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("a", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


def test_kafkas_own_topics_are_not_made_by_asking() -> None:
    with serving() as world:
        (topic,) = ask(world, 13, Topic(name="__consumer_offsets")).topics
    assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)


def test_what_the_caller_may_do_is_told_if_asked_for() -> None:
    with serving() as world:
        world.topic("a")
        quiet = ask(world, 8, Topic(name="a"))
        told = ask(
            world,
            8,
            Topic(name="a"),
            include_topic_authorized_operations=True,
            include_cluster_authorized_operations=True,
        )
    assert quiet.topics[0].topic_authorized_operations == NOT_ASKED
    assert quiet.cluster_authorized_operations == NOT_ASKED
    assert told.topics[0].topic_authorized_operations == 3576
    assert told.cluster_authorized_operations == 8096


def test_a_leader_is_not_known_on_a_listener_that_it_does_not_have() -> None:
    with serving(
        listeners="PLAINTEXT://broker:9092,SECOND://broker:9094,CONTROLLER://127.0.0.1:9093",
        advertised_listeners="PLAINTEXT://broker:9092",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name="PLAINTEXT",
    ) as world:
        world.topic("a")
        for version, code in (
            (5, ErrorCode.LEADER_NOT_AVAILABLE),
            (6, ErrorCode.LISTENER_NOT_FOUND),
        ):
            response = world.client("SECOND").ask(wire.Request([Topic(name="a")]), version)
            partition = response.topics[0].partitions[0]
            assert (partition.error_code, partition.leader_id) == (code, -1)
            assert response.brokers == []


def test_the_epoch_of_a_leader_grows_with_every_start() -> None:
    with serving() as world:
        world.topic("a")
        assert everything(world, 7).topics[0].partitions[0].leader_epoch == 0
        world.restart()
        assert everything(world, 7).topics[0].partitions[0].leader_epoch == 2


def test_a_controller_does_not_serve_it() -> None:
    with serving() as world:
        assert wire.Request.API_KEY not in world.broker.dispatchers[CONTROLLER].served
