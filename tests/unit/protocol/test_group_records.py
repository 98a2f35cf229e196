"""The records of `__consumer_offsets` are those of Kafka, byte for byte."""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

from typing import Any

import pytest
from hypothesis import given

from ottla.model.errors import ProtocolError
from ottla.protocol import group_records
from ottla.protocol.codec import encode
from ottla.protocol.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    CurrentTopicPartitions,
)
from ottla.protocol.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    LegacyOffsetCommitKey,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_record,
    encode_key,
    encode_value,
)
from tests.unit.protocol.kafka_definitions import compare, definition
from tests.unit.protocol.strategies import SETTINGS, messages

# What Apache Kafka 4.3.1 wrote into its log, and what it meant.
TOPIC_ID = bytes.fromhex("53d62b2ece0b481ba8347a18970a231f")
MEMBER = "rdkafka-974bc7b6-2c88-4ff1-a064-7ded03e63223"
NEW_MEMBER = "JAroSWO7SJ24K2smqSX6ZA"
NEW_MEMBER_KEY = "000a672d636f6e73756d657200164a41726f53574f37534a32344b32736d715358365a41"
WRITTEN_BY_KAFKA = [
    (
        "00020009672d636c6173736963",
        "0003000000000000ffffffff000001a1e243ca5500000000",
        GroupMetadataKey("g-classic"),
        GroupMetadataValue("", 0, None, None, 0x01A1E243CA55),
    ),
    (
        "00020009672d636c6173736963",
        "00030008636f6e73756d657200000001000572616e6765002c72646b61666b612d39373462633762362d32633838"
        "2d346666312d613036342d376465643033653633323233000001a1e243cadf00000001002c72646b61666b612d39"
        "373462633762362d326338382d346666312d613036342d376465643033653633323233ffff000772646b61666b61"
        "000a2f3132372e302e302e31000493e000002710000000170003000000010001740000000000000000ffffffff00"
        "0000000021000000000001000174000000040000000000000001000000020000000300000000",
        GroupMetadataKey("g-classic"),
        GroupMetadataValue(
            "consumer", 1, "range", MEMBER, 0x01A1E243CADF,
            [
                MemberMetadata(
                    MEMBER, None, "rdkafka", "/127.0.0.1", 300_000, 10_000,
                    bytes.fromhex("0003000000010001740000000000000000ffffffff0000"),
                    bytes.fromhex(
                        "000000000001000174000000040000000000000001000000020000000300000000"
                    ),
                )
            ],
        ),
    ),
    (
        "00010009672d636c617373696300017400000000",
        "000400000000000000050000000001000001a1e243cdae01001053d62b2ece0b481ba8347a18970a231f",
        OffsetCommitKey("g-classic", "t", 0),
        OffsetCommitValue(5, 0, "", 0x01A1E243CDAE, topic_id=TOPIC_ID),
    ),
    (
        "0005" + NEW_MEMBER_KEY,
        "000000000872646b61666b610b2f3132372e302e302e3102027401000493e00001000100",
        ConsumerGroupMemberMetadataKey("g-consumer", NEW_MEMBER),
        ConsumerGroupMemberMetadataValue(
            None, None, "rdkafka", "/127.0.0.1", ["t"], "", 300_000, None, None
        ),
    ),
    (
        "0003000a672d636f6e73756d6572",
        "000000000002010008c53d154f06651e44",
        ConsumerGroupMetadataKey("g-consumer"),
        ConsumerGroupMetadataValue(2, -4234204645504508348),
    ),
    (
        "0006000a672d636f6e73756d6572",
        "000000000002010008000001a1e243d2b5",
        ConsumerGroupTargetAssignmentMetadataKey("g-consumer"),
        ConsumerGroupTargetAssignmentMetadataValue(2, 0x01A1E243D2B5),
    ),
    (
        "0008" + NEW_MEMBER_KEY,
        "00000000000200000000000253d62b2ece0b481ba8347a18970a231f05000000000000000100000002000000030100"
        "1105000000020000000200000002000000020100",
        ConsumerGroupCurrentMemberAssignmentKey("g-consumer", NEW_MEMBER),
        ConsumerGroupCurrentMemberAssignmentValue(
            2, 0, 0, [CurrentTopicPartitions(TOPIC_ID, [0, 1, 2, 3], [2, 2, 2, 2])]
        ),
    ),
]  # fmt: skip

KEYS: dict[str, Any] = {key.__name__: key for key in group_records._VALUES}
VALUES: dict[str, Any] = {value.__name__: value for value in group_records._VALUES.values()}


@pytest.mark.parametrize("name", [*KEYS, *VALUES])
def test_every_record_is_defined_as_kafka_defines_it(name: str) -> None:
    kafka = definition("kafka-group-coordinator", f"common/message/{name}.json")
    ours = KEYS.get(name) or VALUES[name]
    assert kafka["apiKey"] == ours.API_KEY
    compare(ours, kafka)


@pytest.mark.parametrize("name", KEYS)
def test_every_record_round_trips(name: str) -> None:
    key_class = KEYS[name]

    @SETTINGS
    @given(key=messages(key_class))
    def check(key: Any) -> None:
        assert decode_record(encode_key(key), None) == GroupRecord(key, None)

    check()


@pytest.mark.parametrize(("key", "value", "meant_key", "meant_value"), WRITTEN_BY_KAFKA)
def test_bytes_written_by_kafka_round_trip(
    key: str, value: str, meant_key: Any, meant_value: Any
) -> None:
    record = decode_record(bytes.fromhex(key), bytes.fromhex(value))
    assert record is not None
    assert record.key == meant_key
    assert record.value == meant_value
    assert encode_key(record.key) == bytes.fromhex(key)
    assert encode_value(record.value) == bytes.fromhex(value)


def test_an_offset_with_an_expiry_time_is_written_in_version_1() -> None:
    value = OffsetCommitValue(5, metadata="m", commit_timestamp=10, expire_timestamp=20)
    written = encode_value(value)
    assert written is not None
    assert written[:2] == b"\x00\x01"
    assert decode_record(encode_key(OffsetCommitKey("g", "t", 0)), written) == GroupRecord(
        OffsetCommitKey("g", "t", 0), value
    )


def test_the_oldest_offset_versions_are_decoded() -> None:
    key = encode_key(LegacyOffsetCommitKey("g", "t", 3))
    assert decode_record(key, None) == GroupRecord(LegacyOffsetCommitKey("g", "t", 3), None)


def test_an_unknown_record_type_is_skipped() -> None:
    assert decode_record(b"\x00\x63whatever", b"\x00\x00") is None


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (b"\x00", None, "has no type"),
        (encode_key(GroupMetadataKey("g")), b"\x00", "has no version"),
        (encode_key(GroupMetadataKey("g")), b"\x00\x09", "no version 9"),
        (encode_key(GroupMetadataKey("g")), b"\x00\x03\x00", "ends too early"),
    ],
)
def test_malformed_records_are_refused(key: bytes, value: bytes | None, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        decode_record(key, value)


@given(value=messages(OffsetCommitValue))
def test_the_hand_written_commit_encoding_equals_the_generated_one(
    value: OffsetCommitValue,
) -> None:
    value.expire_timestamp = -1
    for metadata in ("", value.metadata):
        value.metadata = metadata
        assert encode_value(value) == b"\x00\x04" + encode(value, 4)
    key = OffsetCommitKey("g", "t", 7)
    assert encode_key(key) == b"\x00\x01" + encode(key, 0)


def test_keys_of_groups_with_long_ids_are_not_cached() -> None:
    before = group_records._encode_commit_key.cache_info().currsize
    long = OffsetCommitKey("not remembered".ljust(256, "x"), "t", 0)
    assert encode_key(long)[2:] == encode(long, 0)
    assert group_records._encode_commit_key.cache_info().currsize == before
