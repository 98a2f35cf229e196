"""Metadata: who is there, who leads what, and topics that come to be by being asked for."""

import time

import pytest

from ottla.broker.wire import responses
from ottla.broker.wire.cluster_view import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import create_topics
from ottla.protocol.messages import metadata as wire
from tests.unit.broker.requests import batch, produce_request, write
from tests.unit.broker.serving import World, serving

VERSIONS = range(14)
ALL_IS_NULL_SINCE, DECLINING_SINCE, IDS_IN_ANSWERS_SINCE, IDS_SINCE = 1, 4, 10, 12


def named(*names: str, **options: bool) -> wire.Request:
    return wire.Request([wire.MetadataRequestTopic(name=name) for name in names], **options)


def by_id(*ids: bytes) -> wire.Request:
    return wire.Request([wire.MetadataRequestTopic(topic_id, None) for topic_id in ids])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_is_described_in_every_version(version: int) -> None:
    with serving(broker_rack="r1") as world:
        topic_id = world.topic("t", 2)
        answer = world.client().ask(named("t"), version)
        [node] = answer.brokers
        assert (node.node_id, node.host, node.port) == (1, "broker", 9092)
        [topic] = answer.topics
        assert (topic.error_code, topic.name, topic.is_internal) == (0, "t", False)
        assert [part.partition_index for part in topic.partitions] == [0, 1]
        for part in topic.partitions:
            assert (part.error_code, part.leader_id) == (0, 1)
            assert part.replica_nodes == part.isr_nodes == [1]
            assert part.offline_replicas == []
            if version >= 7:
                assert part.leader_epoch == 0
        if version >= 1:
            assert (node.rack, answer.controller_id) == ("r1", 1)
        if version >= 2:
            assert answer.cluster_id == world.broker.image.cluster_id
        if version >= IDS_IN_ANSWERS_SINCE:
            assert topic.topic_id == topic_id


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_are_listed_when_none_is_named(version: int) -> None:
    with serving() as world:
        for name in ("a", "b", "c"):
            world.topic(name)
        request = wire.Request([] if version < ALL_IS_NULL_SINCE else None)
        answer = world.client().ask(request, version)
        assert sorted(topic.name for topic in answer.topics) == ["a", "b", "c"]
        if version >= ALL_IS_NULL_SINCE:
            assert world.client().ask(wire.Request([]), version).topics == []


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_is_made_and_can_be_written_to_at_once(version: int) -> None:
    with serving(num_partitions=3) as world:
        [topic] = world.client().ask(named("new"), version).topics
        assert (topic.error_code, len(topic.partitions)) == (0, 3)
        assert write(world, b"a", topic="new", partition=2) == 0


@pytest.mark.parametrize("version", range(DECLINING_SINCE, 14))
def test_a_client_may_decline_to_make_topics(version: int) -> None:
    with serving() as world:
        request = named("new", allow_auto_topic_creation=False)
        [topic] = world.client().ask(request, version).topics
        assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "new")
        assert topic.partitions == []
        assert world.broker.image.topics_by_name == {}


def test_a_broker_may_decline_to_make_topics() -> None:
    with serving(auto_create_topics_enable="false") as world:
        [topic] = world.client().ask(named("new"), 9).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "x" * 250, "é"])
def test_what_cannot_be_a_name_is_refused_and_makes_nothing(name: str) -> None:
    with serving() as world:
        answer = world.client().ask(named(name, "good"), 9)
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert codes == {name: ErrorCode.INVALID_TOPIC_EXCEPTION, "good": 0}
        assert list(world.broker.image.topics_by_name) == ["good"]


def test_a_topic_that_cannot_be_made_is_unknown() -> None:
    """Names that differ only in dots and underscores would share their metrics."""
    with serving() as world:
        world.topic("a.b")
        [topic] = world.client().ask(named("a_b"), 9).topics
        assert topic.error_code in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        )


def test_a_topic_that_is_asked_for_twice_is_told_once() -> None:
    with serving() as world:
        world.topic("t")
        assert len(world.client().ask(named("t", "t", "new", "new"), 9).topics) == 2


def test_two_who_ask_for_the_same_new_topic_both_get_it() -> None:
    with serving() as world:
        clients = [world.client() for _ in range(3)]
        asked = [client.send(named("new"), 9) for client in clients]
        world.settle()
        for client, number in zip(clients, asked, strict=True):
            assert client.answers()[number].topics[0].error_code == 0
        assert len(world.broker.image.topics_by_name) == 1


@pytest.mark.parametrize("version", range(IDS_SINCE, 14))
def test_topics_are_found_by_id(version: int) -> None:
    with serving() as world:
        topic_id = world.topic("t")
        known, unknown = world.client().ask(by_id(topic_id, b"?" * 16), version).topics
        assert (known.error_code, known.name, known.topic_id) == (0, "t", topic_id)
        assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
        assert unknown.topic_id == b"?" * 16
        assert len(world.broker.image.topics_by_name) == 1


@pytest.mark.parametrize("version", [10, 11])
def test_before_version_12_nobody_may_ask_by_id(version: int) -> None:
    with serving() as world:
        request = wire.Request([wire.MetadataRequestTopic(b"i" * 16, "t")])
        answer = world.client().ask(request, version)
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
        assert world.broker.image.topics_by_name == {}


@pytest.mark.parametrize("version", range(8, 14))
def test_what_one_may_do_is_told_if_asked(version: int) -> None:
    with serving() as world:
        world.topic("t")
        asked = named("t", include_topic_authorized_operations=True)
        if version <= 10:
            asked.include_cluster_authorized_operations = True
        answer = world.client().ask(asked, version)
        assert answer.topics[0].topic_authorized_operations == TOPIC_OPERATIONS
        if version <= 10:
            assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS
        answer = world.client().ask(named("t"), version)
        assert answer.topics[0].topic_authorized_operations == NOT_ASKED


def test_a_partition_whose_disk_is_lost_has_no_leader() -> None:
    with serving(directories=["/data-0", "/data-1"]) as world:
        world.topic("t", 2)
        lost = next(i for i in (0, 1) if world.partition("t", i).log.directory[:7] == "/data-1")
        world.disk.fail("append", path_contains="/data-1")
        world.client().send(produce_request(batch(b"x"), "t", lost), 12)
        world.settle()
        world.settle()
        [topic] = world.client().ask(named("t"), 9).topics
        parts = {part.partition_index: part for part in topic.partitions}
        assert parts[lost].error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert parts[lost].leader_id == -1
        assert parts[lost].offline_replicas == [1]
        assert (parts[1 - lost].error_code, parts[1 - lost].leader_id) == (0, 1)


def test_an_answer_about_a_thousand_partitions_does_not_hold_up_everyone_for_long() -> None:
    with serving() as world:
        many(world, topics=50, partitions=20)
        client = world.client()
        before = time.process_time()
        answer = client.ask(wire.Request(None), 12)
        assert time.process_time() - before < 0.5
        assert sum(len(topic.partitions) for topic in answer.topics) == 1000


def many(world: World, topics: int, partitions: int) -> None:
    wanted = [create_topics.CreatableTopic(f"t{n}", partitions, 1) for n in range(topics)]
    made = world.client().ask(create_topics.Request(topics=wanted))
    assert not any(topic.error_code for topic in made.topics)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_long_answer_takes_several_turns_and_is_the_same(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = wire.Request([] if version < ALL_IS_NULL_SINCE else None)
    with serving(num_partitions=40) as world:
        for name in ("a", "b", "c"):
            world.topic(name, 40)
        short, long = world.client(), world.client()
        monkeypatch.setattr(responses, "FEW", 1000)
        at_once = short.ask(request, version)
        monkeypatch.setattr(responses, "FEW", 10)
        monkeypatch.setattr(responses, "STEP", 10)
        asked = [long.send(request, version) for _ in range(3)]
        assert not long.answers()
        assert not long.channel.is_reading
        world.settle()
        answers = long.answers()
        assert [answers[number] for number in asked] == [at_once] * 3
        assert len(at_once.topics) == 3
        assert long.channel.is_reading
