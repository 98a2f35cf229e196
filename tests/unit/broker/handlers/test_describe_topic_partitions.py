"""DescribeTopicPartitions: all partitions, however many pages it takes."""

import pytest

from ottla.broker.wire import responses
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_topic_partitions as wire
from tests.unit.broker.serving import World, serving


def pages(world: World, *names: str, limit: int = 2000) -> list[list[tuple[str, int]]]:
    """Every page as (topic, partition) each, until there is no next one."""
    topics = [wire.TopicRequest(name) for name in names]
    cursor, found = None, []
    while True:
        answer = world.client().ask(wire.Request(topics, limit, cursor))
        found.append(
            [(t.name, part.partition_index) for t in answer.topics for part in t.partitions]
        )
        if answer.next_cursor is None:
            return found
        cursor = wire.Cursor(answer.next_cursor.topic_name, answer.next_cursor.partition_index)


def test_all_topics_come_in_the_order_of_their_names() -> None:
    with serving() as world:
        topic_id = world.topic("b", 2)
        world.topic("a", 1)
        assert pages(world) == [[("a", 0), ("b", 0), ("b", 1)]]
        assert pages(world, "b") == [[("b", 0), ("b", 1)]]
        answer = world.client().ask(wire.Request([wire.TopicRequest("b")]))
        assert answer.topics[0].topic_id == topic_id
        part = answer.topics[0].partitions[0]
        assert (part.leader_id, part.replica_nodes, part.isr_nodes) == (1, [1], [1])
        assert (part.leader_epoch, part.offline_replicas) == (0, [])


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100, 0, -1])
def test_pages_follow_each_other_without_a_gap(limit: int) -> None:
    with serving() as world:
        for name in ("a", "b", "c"):
            world.topic(name, 3)
        found = pages(world, limit=limit)
        assert [one for page in found for one in page] == [
            (name, index) for name in "abc" for index in range(3)
        ]
        assert max(len(page) for page in found) <= max(limit, 1)


def test_the_broker_bounds_a_page() -> None:
    with serving(max_request_partition_size_limit=2) as world:
        world.topic("a", 5)
        assert [len(page) for page in pages(world)] == [2, 2, 1]


def test_unknown_and_impossible_topics_are_told() -> None:
    with serving() as world:
        answer = world.client().ask(wire.Request([wire.TopicRequest("n"), wire.TopicRequest("/")]))
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert codes == {
            "n": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "/": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        assert world.broker.image.topics_by_name == {}


def test_a_cursor_beyond_the_end_gives_what_follows() -> None:
    with serving() as world:
        world.topic("a", 2)
        world.topic("c", 1)
        answer = world.client().ask(wire.Request([], 10, wire.Cursor("a", 7)))
        assert [(t.name, len(t.partitions)) for t in answer.topics] == [("a", 0), ("c", 1)]
        answer = world.client().ask(wire.Request([], 10, wire.Cursor("b", 0)))
        assert [topic.name for topic in answer.topics] == ["c"]


def test_cursors_that_make_no_sense_are_refused() -> None:
    with serving() as world:
        world.topic("a", 2)
        request = wire.Request([wire.TopicRequest("a")], 10, wire.Cursor("b", 0))
        answer = world.client().ask(request)
        assert {topic.error_code for topic in answer.topics} <= {ErrorCode.INVALID_REQUEST}
        request = wire.Request([wire.TopicRequest("a")], 10, wire.Cursor("a", -1))
        answer = world.client().ask(request)
        assert {topic.error_code for topic in answer.topics} == {ErrorCode.INVALID_REQUEST}


def test_long_pages_take_several_turns_and_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as world:
        for name in ("a", "b"):
            world.topic(name, 40)
        client = world.client()
        at_once = client.ask(wire.Request([], 60))
        monkeypatch.setattr(responses, "FEW", 10)
        monkeypatch.setattr(responses, "STEP", 10)
        asked = [client.send(wire.Request([], 60)) for _ in range(3)]
        assert not client.has_answer(asked[0])
        assert not client.channel.is_reading
        world.settle()
        assert [client.answers()[number] for number in asked] == [at_once] * 3
        assert sum(len(topic.partitions) for topic in at_once.topics) == 60
