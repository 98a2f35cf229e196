"""The records of the metadata log are those of Kafka, and are framed as Kafka frames them."""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol.metadata_records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
    decode_record,
    encode_record,
)
from tests.unit.protocol.kafka_definitions import compare, definition, definitions
from tests.unit.protocol.strategies import SETTINGS, messages, project

# What Apache Kafka 4.3.1 wrote into its log, and what it meant.
TOPIC_ID = bytes.fromhex("b15a4a9909214915956cacfbbefcc653")
WRITTEN_BY_KAFKA = [
    ("010c00116d657461646174612e76657273696f6e001e00", FeatureLevelRecord("metadata.version", 30)),
    (
        "0104000401146d696e2e696e73796e632e7265706c69636173023100",
        ConfigRecord(4, "", "min.insync.replicas", "1"),
    ),
    (
        "01170001001212426f6f747374726170207265636f726473",
        BeginTransactionRecord("Bootstrap records"),
    ),
    ("01020008666f6f2e626172b15a4a9909214915956cacfbbefcc65300", TopicRecord("foo.bar", TOPIC_ID)),
    (
        "01030200000000b15a4a9909214915956cacfbbefcc6530200000001020000000101010000000100000000"
        "00000000020000000000000000000000000000000100",
        PartitionRecord(
            0, TOPIC_ID, [1], [1], leader=1, leader_epoch=0, partition_epoch=0,
            directories=[bytes(15) + b"\x01"],
        ),
    ),
    (
        "01050200000000b15a4a9909214915956cacfbbefcc653040001010104ffffffff06050200000001070502"
        "00000001",
        PartitionChangeRecord(
            0, TOPIC_ID, isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]
        ),
    ),
    (
        "01110300000001000000000000000c01030101",
        BrokerRegistrationChangeRecord(1, 12, cordoned_log_dirs=[]),
    ),
    (
        "010f0000000001000000000000000c00000000000003e800",
        ProducerIdsRecord(1, 12, next_producer_id=1000),
    ),
]  # fmt: skip

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
def test_every_record_round_trips_in_every_version(name: str) -> None:
    cls = RECORDS[name]

    @SETTINGS
    @given(record=messages(cls))
    def check(record: Any) -> None:
        for version in cls.VERSIONS:
            projected = project(record, version)
            assert decode_record(encode_record(projected, version)) == projected

    check()


@pytest.mark.parametrize(("written", "record"), WRITTEN_BY_KAFKA)
def test_a_record_written_by_kafka_round_trips(written: str, record: MetadataRecord) -> None:
    data = bytes.fromhex(written)
    assert decode_record(data) == record
    assert encode_record(record, version=data[2]) == data


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
def test_unknown_records_are_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        decode_record(data)


@given(tail=st.binary(max_size=40))
def test_a_record_with_trailing_bytes_is_refused(tail: bytes) -> None:
    data = encode_record(NoOpRecord(), 0)
    if tail:
        with pytest.raises(ProtocolError):
            decode_record(data + tail)
