"""Produce against Kafka's meaning: what is answered, when, and what the log then holds."""

import errno

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import produce as wire
from ottla.records.record import Record, build_batch
from tests.unit.broker.requests import batch, only, produce_request, values_of, write
from tests.unit.broker.serving import BROKER_RESOURCE, Closed, World, serving

VERSIONS = range(3, 14)


def code_of(world: World, records: bytes | bytearray | None, version: int = 12) -> int:
    return only(world.client().ask(produce_request(records), version)).error_code


def several(*parts: tuple[str, int, bytearray], acks: int = -1) -> wire.Request:
    topics: dict[str, wire.TopicProduceData] = {}
    for name, index, records in parts:
        topic = topics.setdefault(name, wire.TopicProduceData(name=name))
        topic.partition_data.append(wire.PartitionProduceData(index, records))
    return wire.Request(acks=acks, timeout_ms=1000, topic_data=list(topics.values()))


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_get_their_offsets_in_every_version(version: int) -> None:
    with serving() as world:
        topic_id = world.topic()
        client = world.client()
        topic = topic_id if version >= 13 else "t"
        for base_offset in (0, 2, 4):
            part = only(client.ask(produce_request(batch(b"a", b"b"), topic), version))
            assert (part.error_code, part.base_offset) == (0, base_offset)
            assert part.log_append_time_ms == -1
            if version >= 5:
                assert part.log_start_offset == 0
        assert values_of(world.log_bytes()) == [b"a", b"b"] * 3


@pytest.mark.parametrize("version", range(3))
def test_old_versions_are_advertised_and_refused(version: int) -> None:
    with serving() as world:
        client = world.client()
        client.feed(b"\x00\x00" + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(20))
        assert not client.channel.is_open


def test_each_partition_has_its_own_answer() -> None:
    with serving() as world:
        world.topic("t", 2)
        world.topic("u")
        bad = batch(b"x")
        bad[-1] ^= 1
        request = several(
            ("t", 0, batch(b"a")), ("t", 1, bad), ("u", 0, batch(b"b")), ("nobody", 0, batch(b"c"))
        )
        answer = world.client().ask(request, 12)
        codes = {
            (topic.name, part.index): part.error_code
            for topic in answer.responses
            for part in topic.partition_responses
        }
        assert codes == {
            ("t", 0): 0,
            ("t", 1): ErrorCode.CORRUPT_MESSAGE,
            ("u", 0): 0,
            ("nobody", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


def test_acks_that_do_not_exist_are_refused() -> None:
    with serving() as world:
        world.topic()
        for acks in (-2, 2, 100):
            part = only(world.client().ask(produce_request(batch(b"a"), acks=acks), 12))
            assert (part.error_code, part.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
        assert not world.log_bytes()


def test_acks_0_are_not_answered_but_written() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        client.send(produce_request(batch(b"a"), acks=0), 12)
        client.send(several(("t", 0, batch(b"b")), ("t", 0, batch(b"c")), acks=0), 12)
        asked = client.send(produce_request(batch(b"d"), acks=1), 12)
        world.settle()
        assert list(client.answers()) == [asked]
        assert values_of(world.log_bytes()) == [b"a", b"b", b"c", b"d"]


def test_an_error_with_acks_0_closes_the_connection() -> None:
    with serving() as world:
        world.topic()
        for records, topic in ((batch(b"a"), "unknown"), (b"garbage", "t"), (None, "t")):
            client = world.client()
            client.send(produce_request(records, topic, acks=0), 12)
            world.settle()
            assert not client.channel.is_open


def test_a_burst_without_answers_is_written_to_its_end() -> None:
    """More than may wait at once, and nothing comes after it that would end another turn."""
    with serving() as world:
        world.topic()
        client = world.client()
        frames = bytearray()
        for _ in range(600):
            recorder = world.client()
            recorder.feed_bytes = frames.extend  # type: ignore[method-assign]
            recorder.send(produce_request(batch(b"a"), acks=0), 12)
        client.feed_bytes(bytes(frames))
        world.settle()
        assert len(values_of(world.log_bytes())) == 600
        assert client.channel.is_reading


def test_nothing_is_answered_before_it_is_written() -> None:
    with serving() as world:
        world.topic("t", 2)
        client = world.client()
        client.send(produce_request(batch(b"a")), 12)
        client.send(several(("t", 0, batch(b"b")), ("t", 1, batch(b"c"))), 12)
        assert not client.channel.sent
        assert not world.log_bytes()
        world.end_turn()
        assert len(client.answers()) == 2
        assert values_of(world.log_bytes()) == [b"a", b"b"]


def test_all_batches_of_a_turn_are_written_at_once() -> None:
    with serving() as world:
        world.topic()
        clients = [world.client() for _ in range(5)]
        before = world.disk.operations
        for client in clients:
            client.send(produce_request(batch(b"a")), 12)
        world.end_turn()
        assert world.disk.operations == before + 1
        offsets = [only(client.answers()[1]).base_offset for client in clients]
        assert offsets == [0, 1, 2, 3, 4]


def test_a_write_that_fails_for_lack_of_room_takes_its_offsets_back() -> None:
    with serving() as world:
        world.topic()
        write(world, b"first")
        kept = world.log_bytes()
        options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        records = batch(b"x" * 1000, **options)
        client = world.client()
        world.disk.capacity_bytes = world.disk.used_bytes + 100
        part = only(client.ask(produce_request(records), 12))
        assert (part.error_code, part.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert world.log_bytes() == kept
        # Refused from now on, before anything is tried; then room comes back, all by itself.
        part = only(client.ask(produce_request(records), 12))
        assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert "reserve" in part.error_message
        world.disk.capacity_bytes = 1 << 40
        world.pass_ms(1100)
        part = only(client.ask(produce_request(records), 12))
        assert (part.error_code, part.base_offset) == (0, 1)
        assert values_of(world.log_bytes()) == [b"first", b"x" * 1000]


def test_a_disk_that_is_nearly_full_refuses_before_the_last_reserve_is_gone() -> None:
    with serving(ottla_disk_reserve_bytes=1 << 20) as world:
        world.topic()
        write(world, b"a")
        world.disk.capacity_bytes = world.disk.used_bytes + (1 << 20) - 1
        world.pass_ms(1100)
        assert code_of(world, batch(b"b")) == ErrorCode.KAFKA_STORAGE_ERROR
        request = several(("t", 0, batch(b"b")), ("t", 0, batch(b"c")))
        for part in world.client().ask(request, 12).responses[0].partition_responses:
            assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert values_of(world.log_bytes()) == [b"a"]
        assert not world.broker.failed.done()
        world.disk.capacity_bytes += 1 << 20
        world.pass_ms(1100)
        assert code_of(world, batch(b"b")) == 0


def test_the_last_directory_that_fails_ends_the_broker() -> None:
    with serving() as world:
        world.topic()
        world.disk.fail("append", errno.EIO, path_contains="/t-0")
        assert code_of(world, batch(b"a")) == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.broker.failed.done()
        assert isinstance(world.broker.failed.exception(), OSError)


# Idempotence.


def idempotent(sequence: int, *values: bytes, epoch: int = 0, producer_id: int = 7) -> bytearray:
    return batch(
        *(values or (b"x",)),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def test_a_batch_that_comes_again_is_answered_again_and_not_written() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        first = [client.send(produce_request(idempotent(n)), 12) for n in range(5)]
        again = [client.send(produce_request(idempotent(n)), 12) for n in range(5)]
        world.settle()
        answers = client.answers()
        assert [only(answers[n]).base_offset for n in first] == [0, 1, 2, 3, 4]
        assert [only(answers[n]).base_offset for n in again] == [0, 1, 2, 3, 4]
        assert len(values_of(world.log_bytes())) == 5


def test_only_the_last_five_batches_are_known() -> None:
    with serving() as world:
        world.topic()
        for sequence in range(6):
            assert code_of(world, idempotent(sequence)) == 0
        assert code_of(world, idempotent(1)) == 0
        assert code_of(world, idempotent(0)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert code_of(world, idempotent(7)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert code_of(world, idempotent(6, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert code_of(world, idempotent(0, epoch=1)) == 0
        assert code_of(world, idempotent(6)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_what_is_known_of_producers_survives_a_restart() -> None:
    with serving() as world:
        world.topic()
        assert code_of(world, idempotent(0, b"a", b"b")) == 0
        world.restart()
        part = only(world.client().ask(produce_request(idempotent(0, b"a", b"b")), 12))
        assert (part.error_code, part.base_offset) == (0, 0)
        assert code_of(world, idempotent(1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert code_of(world, idempotent(2)) == 0


def test_a_duplicate_of_a_batch_whose_write_fails_fails_too() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        first = client.send(produce_request(idempotent(0, b"x" * 1000)), 12)
        again = client.send(produce_request(idempotent(0, b"x" * 1000)), 12)
        world.disk.capacity_bytes = world.disk.used_bytes + 100
        world.settle()
        for asked in (first, again):
            assert only(client.answers()[asked]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        world.disk.capacity_bytes = 1 << 40
        world.pass_ms(1100)
        part = only(client.ask(produce_request(idempotent(0, b"x" * 1000)), 12))
        assert (part.error_code, part.base_offset) == (0, 0)


# Configs that change while the broker runs.


def test_a_smaller_batch_limit_counts_at_once() -> None:
    with serving() as world:
        world.topic()
        records = batch(b"x" * 1000)
        assert code_of(world, records) == 0
        world.configure("t", "max.message.bytes", 500)
        assert code_of(world, batch(b"x" * 1000)) == ErrorCode.MESSAGE_TOO_LARGE
        world.configure("t", "max.message.bytes", None)
        assert code_of(world, batch(b"x" * 1000)) == 0


def test_a_default_of_the_broker_counts_at_once_and_after_a_restart() -> None:
    with serving() as world:
        world.topic()
        world.configure("", "message.max.bytes", 500, BROKER_RESOURCE)
        assert code_of(world, batch(b"x" * 1000)) == ErrorCode.MESSAGE_TOO_LARGE
        world.restart()
        assert code_of(world, batch(b"x" * 1000)) == ErrorCode.MESSAGE_TOO_LARGE
        world.configure("1", "message.max.bytes", 5000, BROKER_RESOURCE)
        assert code_of(world, batch(b"x" * 1000)) == 0


def test_append_time_is_stamped_as_soon_as_it_is_asked_for() -> None:
    with serving() as world:
        world.topic()
        part = only(world.client().ask(produce_request(batch(b"a")), 12))
        assert part.log_append_time_ms == -1
        world.configure("t", "message.timestamp.type", "LogAppendTime")
        world.pass_ms(5000)
        now = world.now
        part = only(world.client().ask(produce_request(batch(b"b")), 12))
        assert part.log_append_time_ms == now


def test_batches_are_recompressed_as_soon_as_it_is_asked_for() -> None:
    with serving() as world:
        world.topic()
        value = b"x" * 10_000
        assert code_of(world, batch(value)) == 0
        size = len(world.log_bytes())
        world.configure("t", "compression.type", "zstd")
        assert code_of(world, batch(value)) == 0
        assert len(world.log_bytes()) - size < 1000
        assert values_of(world.log_bytes()) == [value, value]


def test_keys_are_asked_for_as_soon_as_the_topic_is_compacted() -> None:
    with serving() as world:
        world.topic()
        assert code_of(world, batch(b"a")) == 0
        world.configure("t", "cleanup.policy", "compact")
        part = only(world.client().ask(produce_request(batch(b"a", b"b")), 12))
        assert part.error_code == ErrorCode.INVALID_RECORD
        assert [error.batch_index for error in part.record_errors] == [0, 1]


# Synced before it is answered.


def test_with_a_flush_interval_of_1_the_answer_waits_for_the_sync() -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic("t", 2)
        client = world.client()
        world.workers.is_holding = True
        one = client.send(produce_request(batch(b"a")), 12)
        two = client.send(several(("t", 0, batch(b"b")), ("t", 1, batch(b"c"))), 12)
        world.settle()
        world.pass_ms(100)
        assert not client.channel.sent
        assert world.partition().high_watermark == 0
        assert values_of(world.log_bytes()) == [b"a", b"b"]
        world.workers.is_holding = False
        world.pass_ms(100)
        assert list(client.answers()) == [one, two]
        assert world.partition().high_watermark == 2
        world.lose_power()
        assert values_of(world.log_bytes()) == [b"a", b"b"]


@pytest.mark.parametrize("is_reference", [True, False])
def test_a_sync_that_takes_too_long_is_answered_as_timed_out(is_reference: bool) -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic("t", 2)
        client = world.client()
        world.workers.is_holding = True
        request = produce_request(batch(b"a"), timeout_ms=500)
        if is_reference:
            request = several(("t", 0, batch(b"a")), ("t", 1, batch(b"b")))
        asked = client.send(request, 12)
        world.settle()
        world.pass_ms(1500)
        for part in client.answers()[asked].responses[0].partition_responses:
            assert (part.error_code, part.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        world.workers.is_holding = False
        world.pass_ms(100)
        assert len(client.frames()) == 1
        assert world.partition().high_watermark == 1


@pytest.mark.parametrize("acks", [-1, 1])
def test_timers_end_with_the_answer(acks: int) -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic("t", 2)
        client = world.client()
        world.pass_ms(10)
        before = len([timer for timer in world.loop._scheduled if not timer.cancelled()])
        for _ in range(10):
            client.ask(produce_request(batch(b"a"), acks=acks), 12)
            client.ask(several(("t", 0, batch(b"b")), ("t", 1, batch(b"c")), acks=acks), 12)
        world.pass_ms(1)
        after = len([timer for timer in world.loop._scheduled if not timer.cancelled()])
        assert after == before


def test_a_sync_that_fails_is_answered_and_ends_what_it_was_for() -> None:
    with serving(directories=["/data-0", "/data-1"], log_flush_interval_messages=1) as world:
        world.topic("t", 2)
        lost = next(i for i in (0, 1) if world.partition("t", i).log.directory[:7] == "/data-1")
        world.disk.fail("sync", errno.ENOSPC, path_contains=f"/data-1/t-{lost}")
        part = only(world.client().ask(produce_request(batch(b"a"), "t", lost), 12))
        assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        part = only(world.client().ask(produce_request(batch(b"a"), "t", lost), 12))
        assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert write(world, b"b", partition=1 - lost) == 0


def test_a_topic_may_be_deleted_while_its_records_are_synced() -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic()
        world.topic("other")
        client = world.client()
        world.workers.is_holding = True
        asked = client.send(produce_request(batch(b"a")), 12)
        world.end_turn()
        world.pass_ms(10)
        world.workers.is_holding = False
        world.delete("t")
        world.pass_ms(100)
        code = only(client.answers()[asked]).error_code
        assert code in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert write(world, b"b", topic="other") == 0


def test_a_topic_may_be_deleted_while_its_records_are_staged() -> None:
    with serving() as world:
        world.topic()
        partition = world.partition()
        client = world.client()
        asked = client.send(produce_request(batch(b"a")), 12)
        world.broker.partitions._remove(world.broker.image.topics_by_name["t"], 0)
        world.end_turn()
        assert only(client.answers()[asked]).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert partition.log.end_offset == 0
        with pytest.raises(Closed):
            world.client().ask(produce_request(batch(b"b"), acks=0), 12)


@pytest.mark.parametrize("version", VERSIONS)
def test_nobody_but_kafkas_own_tools_writes_to_internal_topics(version: int) -> None:
    with serving() as world:
        topic_id = world.topic("__consumer_offsets")
        topic = topic_id if version >= 13 else "__consumer_offsets"
        keyed = build_batch([Record(0, world.now, b"\x00\x63key", b"value")])
        client = world.client()
        part = only(client.ask(produce_request(keyed, topic), version))
        assert part.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        asked = client.send(produce_request(keyed, topic), version, "__admin_client")
        assert only(client.answer_to(asked)).error_code == 0
