"""Subscriptions and assignments of consumers are those of Kafka."""

from typing import Any

import pytest

from ottla.model.errors import ProtocolError
from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)
from tests.unit.protocol.kafka_definitions import compare, definition


@pytest.mark.parametrize("cls", [ConsumerProtocolSubscription, ConsumerProtocolAssignment])
def test_both_are_defined_as_kafka_defines_them(cls: Any) -> None:  # noqa: ANN401
    compare(cls, definition("kafka-clients", f"common/message/{cls.__name__}.json"))


def test_a_subscription_sent_by_librdkafka_is_decoded() -> None:
    data = bytes.fromhex("0003000000010001740000000000000000ffffffff0000")
    subscription, version = decode_versioned(ConsumerProtocolSubscription, data)
    assert version == 3
    assert subscription == ConsumerProtocolSubscription(["t"], user_data=b"", rack_id="")
    assert encode_versioned(subscription, 3) == data


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    assignment = ConsumerProtocolAssignment([AssignmentTopicPartition("t", [0, 1])])
    data = bytearray(encode_versioned(assignment, 3) + b"something new")
    data[1] = 9
    assert decode_versioned(ConsumerProtocolAssignment, data) == (assignment, 3)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff\x00", b"\x00\x01\x00\x00\x00\x09"])
def test_malformed_subscriptions_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_versioned(ConsumerProtocolSubscription, data)
