"""Single records as text."""

import pytest

from ottla.cli.views.record_text import control_text, metadata_text, plain_json, plain_text
from ottla.model.errors import ProtocolError
from ottla.model.types import uuid_text
from ottla.protocol.metadata_records import (
    BrokerEndpoint,
    PartitionRecord,
    RegisterBrokerRecord,
    encode_record,
)
from ottla.records.record import Record


def test_a_users_record_is_escaped() -> None:
    record = Record(5, -1, None, b"a\x1b", (("h", b"\xff"),))
    assert plain_text(record) == r"5  -  key null  value a\x1b  headers h=\xff"
    assert plain_json(record)["headers"] == [{"name": "h", "value_base64": "/w=="}]


def test_a_metadata_record_has_its_name_and_kafkas_id_text() -> None:
    content = PartitionRecord(
        partition_id=2, topic_id=b"\x01" * 16, replicas=[1], leader=1, directories=[b"\x02" * 16]
    )
    text, fields = metadata_text(Record(9, 0, None, encode_record(content, 1)))
    assert text.startswith("9  Partition  partition_id=2")
    assert uuid_text(b"\x01" * 16) in text
    assert uuid_text(b"\x02" * 16) in text
    assert "isr=" not in text  # Empty lists are left out.
    assert fields["type"] == "Partition"


def test_structs_within_records_are_printed() -> None:
    content = RegisterBrokerRecord(broker_id=4, end_points=[BrokerEndpoint("PLAINTEXT", "h", 1)])
    text, fields = metadata_text(Record(1, 0, None, encode_record(content, 3)))
    assert "end_points=[(name=PLAINTEXT host=h port=1 security_protocol=0)]" in text
    told = fields["fields"]
    assert isinstance(told, dict)
    assert told["end_points"][0]["host"] == "h"


def test_an_unreadable_record_is_marked() -> None:
    with pytest.raises(ProtocolError):
        metadata_text(Record(1, 0, None, b"\x01\x7f\x00"))
    with pytest.raises(ProtocolError, match="has no value"):
        metadata_text(Record(1, 0, None, None))


def test_a_control_record_of_an_unknown_type_is_skipped() -> None:
    text, _ = control_text(Record(3, 0, b"\x00\x00\x00\x63", b"\x00\x00"))
    assert text == "3  a control record from the future"
