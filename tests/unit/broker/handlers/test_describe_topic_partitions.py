from typing import Any

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_topic_partitions as wire
from tests.unit.broker.serving import World, serving


def ask(world: World, *names: str, **more: Any) -> wire.Response:  # noqa: ANN401
    return world.client().ask(wire.Request([wire.TopicRequest(name) for name in names], **more))


def shown(response: wire.Response) -> list[tuple[str | None, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


def test_all_topics_come_in_the_order_of_their_names() -> None:
    with serving() as world:
        world.topic("b", 2)
        topic_id = world.topic("a")
        response = ask(world)
    assert shown(response) == [("a", [0]), ("b", [0, 1])]
    assert response.next_cursor is None
    assert response.topics[0].topic_id == topic_id
    assert response.topics[0].topic_authorized_operations == 3576
    partition = response.topics[0].partitions[0]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


def test_pages_follow_each_other_without_a_gap() -> None:
    with serving() as world:
        world.topic("a", 3)
        world.topic("b", 2)
        cursor, seen = None, []
        while True:
            response = ask(world, response_partition_limit=2, cursor=cursor)
            seen += [(n, index) for n, indexes in shown(response) for index in indexes]
            cursor = response.next_cursor
            if cursor is None:
                break
    assert seen == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]


def test_the_brokers_own_limit_holds_too() -> None:
    with serving(max_request_partition_size_limit=1) as world:
        world.topic("a", 2)
        response = ask(world, "a")
        assert response.next_cursor is not None
    assert shown(response) == [("a", [0])]
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("a", 1)


def test_a_page_that_is_full_points_at_the_next_topic() -> None:
    with serving() as world:
        world.topic("a")
        world.topic("b")
        response = ask(world, "a", "b", response_partition_limit=1)
    assert shown(response) == [("a", [0])]
    assert response.next_cursor == wire.Cursor("b", 0)


def test_unknown_and_invalid_names_have_their_codes() -> None:
    with serving() as world:
        response = ask(world, "x", "a/b")
    assert [(t.name, t.error_code) for t in response.topics] == [
        ("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("cursor", [wire.Cursor("z", 0), wire.Cursor("a", -1)])
def test_a_cursor_that_points_nowhere_is_refused(cursor: wire.Cursor) -> None:
    with serving() as world:
        world.topic("a")
        response = ask(world, "a", cursor=cursor)
    assert {t.error_code for t in response.topics} == {ErrorCode.INVALID_REQUEST}
