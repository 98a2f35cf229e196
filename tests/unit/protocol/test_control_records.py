"""Control records have the keys and values that Kafka gives them."""

# ruff: noqa: ANN401  What is said here holds for messages of any class.

from typing import Any

import pytest
from hypothesis import given
from kio.index import load_entity_schema
from kio.static.constants import EntityType

from ottla.model.errors import ProtocolError
from ottla.protocol import control_records
from ottla.protocol.codec import decode, encode
from ottla.protocol.control_records import (
    Control,
    ControlType,
    Endpoint,
    EndTxnMarker,
    KRaftVersionFeature,
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    Voter,
    VotersRecord,
    control_type,
    decode_control,
    encode_control,
)
from tests.unit.protocol.kafka_definitions import compare, definition
from tests.unit.protocol.kio_bridge import kio_bytes, to_kio
from tests.unit.protocol.strategies import SETTINGS, messages, module_classes, project

CLASSES = module_classes(control_records)
KIO_NAMES = {
    "EndTxnMarker": "end_txn_marker",
    "LeaderChangeMessage": "leader_change_message",
    "SnapshotHeaderRecord": "snapshot_header_record",
    "SnapshotFooterRecord": "snapshot_footer_record",
    "KRaftVersionRecord": "k_raft_version_record",
    "VotersRecord": "voters_record",
}


# Values that Apache Kafka 4.3.1 wrote into its log and its snapshots, and what they meant.
DIRECTORY_ID = bytes.fromhex("d7c7dc84ac3443dd8801aa89d1c8ab5c")
WRITTEN_BY_KAFKA = [
    (
        ControlType.LEADER_CHANGE,
        "00000000000102000000010002000000010000",
        LeaderChangeMessage(0, 1, [LeaderChangeVoter(1)], [LeaderChangeVoter(1)]),
    ),
    (ControlType.SNAPSHOT_HEADER, "0000000001a1e2111bdb00", SnapshotHeaderRecord(0, 1794794134491)),
    (ControlType.SNAPSHOT_FOOTER, "000000", SnapshotFooterRecord()),
    (ControlType.KRAFT_VERSION, "0000000100", KRaftVersionRecord(0, 1)),
    (
        ControlType.KRAFT_VOTERS,
        "00000200000001d7c7dc84ac3443dd8801aa89d1c8ab5c020b434f4e54524f4c4c45520a3132372e302e30"
        "2e3152d10000000001000000",
        VotersRecord(
            0,
            [
                Voter(
                    1,
                    DIRECTORY_ID,
                    [Endpoint("CONTROLLER", "127.0.0.1", 21201)],
                    KRaftVersionFeature(0, 1),
                )
            ],
        ),
    ),
]


@pytest.mark.parametrize(("kind", "written", "control"), WRITTEN_BY_KAFKA)
def test_bytes_written_by_kafka_round_trip(
    kind: ControlType, written: str, control: Control
) -> None:
    key, value = encode_control(kind, control)
    assert value == bytes.fromhex(written)
    assert decode_control(key, value) == (kind, control)


@pytest.mark.parametrize("name", CLASSES)
def test_every_control_record_is_defined_as_kafka_defines_it(name: str) -> None:
    compare(CLASSES[name], definition("kafka-clients", f"common/message/{name}.json"))


@pytest.mark.parametrize("name", CLASSES)
def test_every_version_has_the_bytes_of_an_independent_implementation(name: str) -> None:
    cls = CLASSES[name]

    @SETTINGS
    @given(message=messages(cls))
    def check(message: Any) -> None:
        for version in cls.VERSIONS:
            kio_cls = load_entity_schema(KIO_NAMES[name], version, EntityType.data)
            projected = project(message, version)
            data = encode(projected, version)
            assert data == kio_bytes(to_kio(projected, kio_cls, version))
            assert decode(cls, data, version) == projected

    check()


def test_commit_and_abort_markers_differ_in_the_key() -> None:
    assert encode_control(ControlType.COMMIT, EndTxnMarker(7)) == (
        b"\x00\x00\x00\x01",
        b"\x00\x00\x00\x00\x00\x07",
    )
    abort = encode_control(ControlType.ABORT, EndTxnMarker(7))
    assert decode_control(*abort) == (ControlType.ABORT, EndTxnMarker(7))


def test_a_newer_version_of_a_transaction_marker_is_read_as_the_known_one() -> None:
    marker = decode_control(b"\x00\x00\x00\x01", b"\x00\x05\x00\x00\x00\x07more")
    assert marker == (ControlType.COMMIT, EndTxnMarker(7))


@pytest.mark.parametrize("version", LeaderChangeMessage.VERSIONS)
def test_a_quorum_message_is_written_in_its_own_version_field(version: int) -> None:
    directory = b"d" * 16 if version else bytes(16)
    change = LeaderChangeMessage(version, 1, [LeaderChangeVoter(1, directory)])
    key, value = encode_control(ControlType.LEADER_CHANGE, change)
    assert decode_control(key, value) == (ControlType.LEADER_CHANGE, change)


def test_an_unknown_control_type_is_skipped() -> None:
    assert control_type(b"\x00\x00\x00\x63") == 99
    assert decode_control(b"\x00\x00\x00\x63", b"") is None


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (b"\x00\x00\x00", b"", "fewer than four bytes"),
        (b"\xff\xff\x00\x01", b"", "key of a control record has version -1"),
        (b"\x00\x00\x00\x01", b"\x00", "no version"),
        (b"\x00\x00\x00\x01", b"\xff\xff\x00\x00\x00\x00", "version -1"),
        (b"\x00\x00\x00\x05", b"\x00\x09\x00\x00\x00", "no version 9 of KRaftVersionRecord"),
        (b"\x00\x00\x00\x01", b"\x00\x00\x00", "ends too early"),
    ],
)
def test_malformed_records_are_refused(key: bytes, value: bytes, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        decode_control(key, value)


def test_the_type_must_be_that_of_the_message() -> None:
    with pytest.raises(AssertionError):
        encode_control(ControlType.COMMIT, KRaftVersionRecord())
