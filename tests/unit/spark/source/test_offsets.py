import pytest

from ottla.model.types import ZERO_UUID, TopicPartition
from ottla.spark.errors import SparkError
from ottla.spark.source.offsets import Progress

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
ID = bytes(range(16))


def test_what_is_written_is_read() -> None:
    made = Progress({A1: 5, A0: 3, B0: 0}, {"a": ID, "b": ZERO_UUID})
    assert made.as_json() == {
        "topics": {
            "a": {"id": "AAECAwQFBgcICQoLDA0ODw", "partitions": {"0": 3, "1": 5}},
            "b": {"id": None, "partitions": {"0": 0}},
        }
    }
    assert Progress.from_json(made.as_json()) == made


def test_the_same_progress_is_the_same_text() -> None:
    one = Progress({A0: 1, B0: 2}, {"a": ID, "b": ID})
    other = Progress({B0: 2, A0: 1}, {"b": ID, "a": ID})
    assert list(one.as_json()["topics"]) == list(other.as_json()["topics"])


@pytest.mark.parametrize("data", [{}, {"topics": 1}, {"orders": {"0": 1}}, {"topics": {"a": {}}}])
def test_what_another_source_wrote_is_refused(data: dict) -> None:
    with pytest.raises(SparkError, match="begin with a new checkpointLocation"):
        Progress.from_json(data)


def test_a_topic_is_known_by_its_id_where_there_is_one() -> None:
    old, new = Progress({A0: 1}, {"a": ID}), Progress({A0: 1}, {"a": bytes(15) + b"\x01"})
    assert not old.has_same_topic(new, "a")
    assert old.has_same_topic(old, "a")
    assert old.has_same_topic(Progress({A0: 1}, {"a": ZERO_UUID}), "a")
    assert old.has_same_topic(Progress(), "a")
