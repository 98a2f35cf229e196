import pytest

from ottla.model.types import ZERO_UUID
from ottla.protocol.messages import delete_topics as wire
from tests.unit.metadata.controller_driver import ControllerDriver

State = wire.DeleteTopicState
UNKNOWN = b"u" * 16


def answers(deciding: ControllerDriver, *topics: State, names: tuple[str, ...] = ()) -> list[tuple]:
    response = deciding.ask(wire.Request(list(topics), list(names)))
    return sorted((r.name or "", r.error_code, r.error_message) for r in response.responses)


def test_topics_are_deleted_by_name_and_by_id() -> None:
    deciding = ControllerDriver()
    deciding.create("a")
    deciding.create("b", retention_ms="5")
    deciding.create("c")
    by_id = deciding.image.topics_by_name["b"].id
    assert answers(deciding, State("a"), State(None, by_id)) == [("a", 0, None), ("b", 0, None)]
    assert answers(deciding, names=("c",)) == [("c", 0, None)]
    assert not deciding.image.topics_by_name
    assert not deciding.image.configs


@pytest.mark.parametrize(
    ("topics", "code", "sentence"),
    [
        ([State("x")], 3, "This server does not host this topic-partition."),
        ([State(None, UNKNOWN)], 100, "This server does not host this topic ID."),
        ([State()], 42, "Neither topic name nor id were specified."),
        ([State("t", UNKNOWN)], 42, "You may not specify both topic name and topic id."),
        ([State("t"), State("t")], 42, "Duplicate topic name."),
        ([State(None, UNKNOWN), State(None, UNKNOWN)], 42, "Duplicate topic id."),
    ],
)
def test_invalid_requests_get_kafkas_errors(topics: list[State], code: int, sentence: str) -> None:
    deciding = ControllerDriver()
    deciding.create("t")
    response = deciding.ask(wire.Request(topics))
    assert [(r.error_code, r.error_message) for r in response.responses] == [(code, sentence)]
    assert "t" in deciding.image.topics_by_name


def test_a_name_and_an_id_of_the_same_topic_delete_nothing() -> None:
    deciding = ControllerDriver()
    deciding.create("t")
    topic_id = deciding.image.topics_by_name["t"].id
    response = deciding.ask(wire.Request([State("t"), State(None, topic_id)]))
    assert [r.error_message for r in response.responses] == [
        "The provided topic name maps to an ID that was already supplied."
    ]
    assert topic_id != ZERO_UUID
    assert "t" in deciding.image.topics_by_name
