"""Types and text forms of ids."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.types import ZERO_UUID, TopicPartition, uuid_from_text, uuid_text


def test_a_partition_is_written_as_its_directory() -> None:
    assert str(TopicPartition("my-topic", 3)) == "my-topic-3"
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 9)])[0] == ("a", 9)


@given(st.binary(min_size=16, max_size=16))
def test_an_id_is_read_as_it_is_written(raw: bytes) -> None:
    text = uuid_text(raw)
    assert len(text) == 22
    assert uuid_from_text(text) == raw


def test_ids_are_written_as_kafka_writes_them() -> None:
    assert uuid_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    raw = uuid.UUID("fbf2f6a1-3f7e-4ff8-bc2e-3a0d0f1e2d3c").bytes
    assert uuid_text(raw) == "-_L2oT9-T_i8LjoNDx4tPA"


@pytest.mark.parametrize(
    "text",
    ["", "short", "x" * 21, "x" * 23, "A" * 21 + "/", "A" * 22 + "!", "A" * 10 + " " + "A" * 12],
)
def test_text_that_is_not_an_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        uuid_from_text(text)
