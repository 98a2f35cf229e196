"""The records of the metadata log are those of Kafka, and are framed as Kafka frames them."""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol.metadata_records import (
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from tests.unit.protocol.kafka_definitions import compare, definition, definitions
from tests.unit.protocol.strategies import SETTINGS, messages, project

RECORDS: dict[str, Any] = {cls.__name__: cls for cls in get_args(MetadataRecord)}


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_is_defined_as_kafka_defines_it(name: str) -> None:
    file = {"ZkMigrationStateRecord": "ZkMigrationRecord"}.get(name, name)
    kafka = definition("kafka-metadata", f"common/metadata/{file}.json")
    assert kafka["name"] == name
    assert kafka["apiKey"] == RECORDS[name].API_KEY
    compare(RECORDS[name], kafka)


def test_kafka_has_no_record_that_we_lack() -> None:
    found = definitions("kafka-metadata", "common/metadata/").values()
    assert {kafka["name"] for kafka in found} == set(RECORDS)


@pytest.mark.parametrize("name", RECORDS)
def test_every_record_survives_every_version(name: str) -> None:
    cls = RECORDS[name]

    @SETTINGS
    @given(record=messages(cls))
    def check(record: Any) -> None:
        for version in cls.VERSIONS:
            projected = project(record, version)
            assert decode_record(encode_record(projected, version)) == projected

    check()


def test_the_frame_is_its_version_then_key_then_version_of_the_record() -> None:
    record = TopicRecord("orders", bytes(range(16)))
    assert encode_record(record, 0) == b"\x01\x02\x00\x07orders" + bytes(range(16)) + b"\x00"


def test_a_change_writes_only_what_changed_in_the_order_of_tags() -> None:
    change = PartitionChangeRecord(1, bytes(16), isr=[3], leader=3, directories=[bytes(16)])
    body = encode_record(change, 1)[3:]
    assert body[20:] == (
        b"\x03"  # Three tagged fields:
        b"\x00\x05\x02\x00\x00\x00\x03"  # isr,
        b"\x01\x04\x00\x00\x00\x03"  # leader,
        b"\x08\x11\x02" + bytes(16)  # directories.
    )


def test_a_field_that_the_version_lacks_is_refused() -> None:
    record = PartitionRecord(eligible_leader_replicas=[1])
    with pytest.raises(Refusal, match="eligible_leader_replicas") as refused:
        encode_record(record, 1)
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "beyond the end"),
        (b"\x00\x14\x00\x00", "frame version 0"),
        (b"\x02\x14\x00\x00", "frame version 2"),
        (b"\x01\x7f\x00\x00", "no metadata record with key 127"),
        (b"\x01\x14\x01\x00", "NoOpRecord has no version 1"),
        (b"\x01\x14\x00", "ends too early"),
        (b"\x01\x14\x00\x00\x00", "1 bytes follow"),
    ],
)
def test_what_is_not_a_record_of_ours_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        decode_record(data)


@given(tail=st.binary(max_size=40))
def test_a_record_with_bytes_after_it_is_never_taken(tail: bytes) -> None:
    data = encode_record(NoOpRecord(), 0)
    if tail:
        with pytest.raises(ProtocolError):
            decode_record(data + tail)
