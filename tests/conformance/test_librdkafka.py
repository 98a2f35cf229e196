"""Produce and consume with confluent-kafka (librdkafka)."""

import time

import pytest
from confluent_kafka import (
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaError,
    KafkaException,
    Message,
)
from confluent_kafka import TopicPartition as Position

from tests.conformance.librdkafka import (
    SECONDS_MAX,
    consume,
    consumer,
    create,
    produce,
    producer,
    take,
)

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def values_of(messages: list[Message]) -> list[bytes]:
    return [message.value() for message in messages]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_come_back_in_order_with_each_acks(bootstrap: str, topic: str, acks: str) -> None:
    create(bootstrap, topic)
    sent = [b"value %d" % n for n in range(200)]
    produce(bootstrap, topic, sent, acks=acks)
    got = consume(bootstrap, topic, 200)
    assert values_of(got) == sent
    assert [message.offset() for message in got] == list(range(200))


@pytest.mark.parametrize("codec", CODECS)
def test_each_codec_passes_through(bootstrap: str, topic: str, codec: str) -> None:
    create(bootstrap, topic)
    sent = [b"the same words again and again %d" % n for n in range(500)]
    produce(bootstrap, topic, sent, compression_type=codec)
    assert values_of(consume(bootstrap, topic, 500)) == sent


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_recompresses_to_its_own_codec(bootstrap: str, topic: str, codec: str) -> None:
    create(bootstrap, topic, compression_type=codec)
    sent = [b"words %d" % n for n in range(300)]
    produce(bootstrap, topic, sent, compression_type="gzip", batch_num_messages=100)
    assert values_of(consume(bootstrap, topic, 300)) == sent


def test_keys_headers_timestamps_and_nulls_survive(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    headers = [("one", b"1"), ("null", None), ("empty", b""), ("one", b"again")]
    sender = producer(bootstrap)
    sender.produce(topic, None, key=b"tombstone", partition=0, timestamp=1_700_000_000_000)
    sender.produce(topic, b"", key=None, partition=0, headers=headers)
    sender.produce(topic, "snö".encode(), key=b"\x00\xff", partition=0)
    assert sender.flush(SECONDS_MAX) == 0
    first, second, third = consume(bootstrap, topic, 3)
    assert (first.key(), first.value()) == (b"tombstone", None)
    assert first.timestamp() == (TIMESTAMP_CREATE_TIME, 1_700_000_000_000)
    assert (second.key(), second.value(), second.headers()) == (None, b"", headers)
    assert (third.key(), third.value()) == (b"\x00\xff", "snö".encode())


def test_log_append_time_is_the_brokers(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000) - 1
    sender = producer(bootstrap)
    sender.produce(topic, b"old", partition=0, timestamp=1_000)
    assert sender.flush(SECONDS_MAX) == 0
    kind, timestamp = consume(bootstrap, topic, 1)[0].timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before <= timestamp <= int(time.time() * 1000) + 1


def test_large_records_pass(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, max_message_bytes="10000000")
    sent = [bytes([n]) * 5_000_000 for n in range(3)]
    produce(bootstrap, topic, sent, message_max_bytes=10_000_000)
    assert values_of(consume(bootstrap, topic, 3)) == sent


def test_a_record_larger_than_the_topic_allows_is_refused(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, max_message_bytes="1000")
    errors: list[KafkaError] = []
    sender = producer(bootstrap)
    sender.produce(topic, b"x" * 2000, partition=0, on_delivery=lambda e, _: errors.append(e))
    sender.flush(SECONDS_MAX)
    assert [error.code() for error in errors] == [KafkaError.MSG_SIZE_TOO_LARGE]
    produce(bootstrap, topic, [b"small"])
    assert values_of(consume(bootstrap, topic, 1)) == [b"small"]


def test_a_timestamp_too_far_ahead_is_refused(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, message_timestamp_after_max_ms="1000")
    errors: list[KafkaError] = []
    sender = producer(bootstrap)
    ahead = int(time.time() * 1000) + 3_600_000
    sender.produce(
        topic, b"x", partition=0, timestamp=ahead, on_delivery=lambda e, _: errors.append(e)
    )
    sender.flush(SECONDS_MAX)
    assert [error.name() for error in errors] == ["INVALID_TIMESTAMP"]


def test_many_partitions_each_keep_their_order(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=50)
    sender = producer(bootstrap)
    for number in range(1000):
        sender.produce(topic, b"%d" % number, partition=number % 50)
    assert sender.flush(SECONDS_MAX) == 0
    reader = consumer(bootstrap)
    reader.assign([Position(topic, partition, 0) for partition in range(50)])
    by_partition: dict[int, list[int]] = {}
    for message in take(reader, 1000):
        by_partition.setdefault(message.partition(), []).append(int(message.value()))
    reader.close()
    assert by_partition == {p: list(range(p, 1000, 50)) for p in range(50)}


def test_keys_choose_partitions_that_metadata_names(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=3)
    sender = producer(bootstrap)
    places: dict[bytes, set[int]] = {}

    def answered(error: object, message: Message) -> None:
        assert error is None
        places.setdefault(message.key(), set()).add(message.partition())

    for number in range(60):
        sender.produce(topic, b"v", key=b"key %d" % (number % 12), on_delivery=answered)
    assert sender.flush(SECONDS_MAX) == 0
    assert all(len(partitions) == 1 for partitions in places.values())
    assert set().union(*places.values()) <= {0, 1, 2}


def test_an_idempotent_producer_is_served(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    sent = [b"%d" % n for n in range(2000)]
    offsets = produce(
        bootstrap, topic, sent, enable_idempotence=True, batch_num_messages=10, linger_ms=0
    )
    assert offsets == list(range(2000))
    assert values_of(consume(bootstrap, topic, 2000)) == sent


def test_offsets_are_found_by_time(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    sender = producer(bootstrap)
    for number in range(10):
        sender.produce(topic, b"v", partition=0, timestamp=1_700_000_000_000 + number * 1000)
    assert sender.flush(SECONDS_MAX) == 0
    reader = consumer(bootstrap)

    def offset_at(timestamp: int) -> int:
        (found,) = reader.offsets_for_times([Position(topic, 0, timestamp)], timeout=SECONDS_MAX)
        return int(found.offset)

    assert offset_at(0) == 0
    assert offset_at(1_700_000_003_000) == 3
    assert offset_at(1_700_000_003_001) == 4
    assert offset_at(1_700_000_009_001) == OFFSET_END
    assert reader.get_watermark_offsets(Position(topic, 0), timeout=SECONDS_MAX) == (0, 10)
    reader.close()


def test_a_consumer_starts_anywhere_and_follows(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"%d" % n for n in range(10)])
    assert values_of(consume(bootstrap, topic, 3, offset=7)) == [b"7", b"8", b"9"]
    reader = consumer(bootstrap)
    reader.assign([Position(topic, 0, 10)])
    assert reader.poll(0.3) is None
    produce(bootstrap, topic, [b"new"])
    assert values_of(take(reader, 1)) == [b"new"]
    reader.close()


@pytest.mark.parametrize(("reset", "expected"), [("earliest", b"0"), ("latest", b"late")])
def test_an_offset_out_of_range_is_reset(
    bootstrap: str, topic: str, reset: str, expected: bytes
) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"0", b"1"])
    reader = consumer(bootstrap, auto_offset_reset=reset)
    reader.assign([Position(topic, 0, 1000)])
    deadline = time.monotonic() + SECONDS_MAX
    message = None
    while message is None:
        assert time.monotonic() < deadline
        if reset == "latest":
            produce(bootstrap, topic, [b"late"])
        message = reader.poll(0.5)
    assert message.value() == expected
    reader.close()


def test_an_offset_out_of_range_is_told_when_there_is_no_reset(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    reader = consumer(bootstrap, auto_offset_reset="error")
    reader.assign([Position(topic, 0, 1000)])
    with pytest.raises(KafkaException) as failure:
        take(reader, 1)
    assert failure.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
    reader.close()


def test_the_end_of_a_partition_is_told(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, [b"only"])
    reader = consumer(bootstrap, enable_partition_eof=True)
    reader.assign([Position(topic, 0, 0)])
    assert values_of(take(reader, 1)) == [b"only"]
    with pytest.raises(KafkaException) as failure:
        take(reader, 1)
    assert failure.value.args[0].code() == KafkaError._PARTITION_EOF
    reader.close()


def test_a_topic_is_created_by_the_first_produce(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, [b"first"])
    assert values_of(consume(bootstrap, topic, 1)) == [b"first"]


def test_a_topic_with_a_bad_name_is_refused(bootstrap: str) -> None:
    errors: list[KafkaError] = []
    sender = producer(bootstrap, message_timeout_ms=5000)
    sender.produce("not a topic!", b"x", on_delivery=lambda e, _: errors.append(e))
    sender.flush(SECONDS_MAX)
    assert [error.name() for error in errors] == ["TOPIC_EXCEPTION"]


def test_a_partition_that_does_not_exist_is_refused(bootstrap: str, topic: str) -> None:
    create(bootstrap, topic, partitions=1)
    errors: list[KafkaError] = []
    sender = producer(bootstrap, message_timeout_ms=4000)
    sender.produce(topic, b"x", partition=7, on_delivery=lambda e, _: errors.append(e))
    sender.flush(SECONDS_MAX)
    assert [error.name() for error in errors] == ["_UNKNOWN_PARTITION"]
