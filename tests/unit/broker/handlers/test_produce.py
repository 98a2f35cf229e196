"""Produce against Kafka's meaning: what is answered, when, and what the log then holds."""

import asyncio
import errno
from collections.abc import Iterator
from itertools import count as counting

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import produce as wire
from ottla.records.admission import Admission
from ottla.records.batch import walk_batches
from ottla.records.inspection import RECORD_ERRORS_MAX
from ottla.records.record import Record, build_batch
from ottla.simulation.world.clock import WALL_START_MS
from tests.unit.broker.replicating import replicating
from tests.unit.broker.requests import batch, only, produce_request, values_of, write
from tests.unit.broker.serving import (
    BROKER_RESOURCE,
    Client,
    Closed,
    HeldWorkers,
    World,
    serving,
)

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


def many(count: int = 3000, *, key: bytes | None = b"k", **options: int) -> bytearray:
    """A batch whose records take more than a turn's budget to look at."""
    return build_batch([Record(i, WALL_START_MS, key, b"v%d" % i) for i in range(count)], **options)


def held_by_a_worker(world: World, client: Client, request: wire.Request) -> int:
    """Send a request, and see that it waits for a worker."""
    world.settle()  # The names of new logs are synced.
    world.workers.is_holding = True
    asked = client.send(request, 12)
    world.settle()
    assert not client.has_answer(asked)
    assert world.workers.waiting == 1
    return asked


def finish(world: World) -> None:
    world.workers.is_holding = False


@pytest.mark.parametrize("codec", range(5))
def test_batches_admitted_by_a_worker_keep_their_place(codec: int) -> None:
    with serving() as world:
        world.topic(cleanup_policy="compact")
        client = world.client()
        small = build_batch([Record(0, WALL_START_MS, b"k", b"last")])
        first = held_by_a_worker(world, client, produce_request(many(codec=codec)))
        second = client.send(produce_request(small), 12)
        assert not client.channel.is_reading
        world.settle()
        other = only(world.client().ask(produce_request(small), 12))
        assert (other.error_code, other.base_offset) == (0, 0)
        finish(world)
        assert only(client.answer_to(first)).base_offset == 1
        assert only(client.answer_to(second)).base_offset == 3001
        assert client.channel.is_reading
        assert values_of(world.log_bytes())[-1] == b"last"
        assert world.broker.memory.used_bytes == 0


def test_append_time_does_not_go_back_while_a_worker_admits() -> None:
    with serving() as world:
        world.topic(cleanup_policy="compact", message_timestamp_type="LogAppendTime")
        client = world.client()
        first = held_by_a_worker(world, client, produce_request(many(codec=4)))
        world.pass_ms(500)
        small = build_batch([Record(0, WALL_START_MS, b"k", b"v")])
        other = only(world.client().ask(produce_request(small), 12))
        finish(world)
        held = only(client.answer_to(first))
        assert (other.base_offset, held.base_offset) == (0, 1)
        assert held.log_append_time_ms >= other.log_append_time_ms > WALL_START_MS
        last = list(walk_batches(world.log_bytes()))[-1]
        assert (last.max_timestamp, last.is_valid) == (held.log_append_time_ms, True)


def test_append_time_does_not_go_back_between_the_two_ways_of_a_turn() -> None:
    with serving() as world:
        world.topic(partitions=2, message_timestamp_type="LogAppendTime")
        client = world.client()
        client.ask(produce_request(batch(b"x")), 12)  # The fast way knows how it begins.
        plain, times = produce_request(batch(b"a")), counting(world.now)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(world.broker.env.clock, "wall", lambda: next(times))
            two = several(("t", 0, batch(b"b")), ("t", 1, batch(b"c")))
            asked = [client.send(each, 12) for each in (plain, two, plain)]
            world.settle()
        answers = [client.answer_to(each).responses[0].partition_responses[0] for each in asked]
        stamped = [each.log_append_time_ms for each in answers]
        assert stamped == sorted(stamped)


def test_a_batch_that_unfolds_to_more_than_the_limit_is_refused_and_not_written() -> None:
    with serving() as world:
        world.topic(compression_type="uncompressed")
        large = build_batch([Record(0, WALL_START_MS, b"k", bytes(3 << 20))], codec=4)
        assert code_of(world, large) == ErrorCode.MESSAGE_TOO_LARGE
        assert world.log_bytes() == b""


def test_sequences_of_a_producer_stay_in_order_while_a_worker_admits() -> None:
    with serving() as world:
        world.topic(cleanup_policy="compact")
        client = world.client()
        producer = {"producer_id": 7, "producer_epoch": 0}
        first = held_by_a_worker(world, client, produce_request(many(base_sequence=0, **producer)))
        rest = [
            client.send(produce_request(many(1, base_sequence=3000 + i, **producer)), 12)
            for i in range(4)
        ]
        again = world.client()  # The producer gave up its connection and sends the batch again.
        retried = again.send(produce_request(many(base_sequence=0, **producer)), 12)
        finish(world)
        codes = [only(client.answer_to(asked)).error_code for asked in (first, *rest)]
        assert codes == [0] * 5
        assert only(again.answer_to(retried)).base_offset == 0
        assert len(values_of(world.log_bytes())) == 3004


def test_the_partitions_behind_a_costly_one_wait_in_their_order() -> None:
    with serving() as world:
        world.topic("t", 2, cleanup_policy="compact")
        client = world.client()
        parts = [("t", 0, many(2)), ("t", 1, many()), ("t", 0, many(3)), ("t", 1, many(4))]
        request = several(*parts)
        world.topic("u")
        asked = held_by_a_worker(world, client, request)
        assert world.partition("t", 0).log.end_offset == 2
        # All connections share the buffer from which the request was read.
        assert write(world, b"x" * 100_000, topic="u") == 0
        finish(world)
        results = client.answer_to(asked).responses[0].partition_responses
        assert [(r.index, r.error_code, r.base_offset) for r in results] == [
            (0, 0, 0),
            (1, 0, 0),
            (0, 0, 2),
            (1, 0, 3000),
        ]


def test_what_a_worker_refuses_is_answered_as_at_once() -> None:
    with serving() as world:
        world.topic(cleanup_policy="compact")
        client = world.client()
        asked = held_by_a_worker(world, client, produce_request(many(key=None)))
        finish(world)
        part = only(client.answer_to(asked))
        assert (part.error_code, part.base_offset) == (ErrorCode.INVALID_RECORD, -1)
        assert len(part.record_errors) == RECORD_ERRORS_MAX
        with pytest.raises(Closed):
            world.client().ask(produce_request(many(key=None), acks=0), 12)
        assert world.broker.memory.used_bytes == 0


def test_a_topic_may_be_deleted_while_a_worker_admits() -> None:
    with serving() as world:
        world.topic(cleanup_policy="compact")
        client = world.client()
        asked = held_by_a_worker(world, client, produce_request(many()))
        world.broker.partitions._remove(world.broker.image.topics_by_name["t"], 0)
        finish(world)
        code = only(client.answer_to(asked)).error_code
        assert code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_an_unexpected_error_in_a_worker_costs_its_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle = Admission._settle

    def fail(
        self: Admission, data: bytes, max_timestamp: int, is_sequential: bool
    ) -> Iterator[None]:
        if self.batch.count > 1:
            raise ValueError("a bug")
        return settle(self, data, max_timestamp, is_sequential)

    with serving() as world:
        world.topic(cleanup_policy="compact")
        monkeypatch.setattr(Admission, "_settle", fail)
        client = world.client()
        results = client.ask(several(("t", 0, many()), ("t", 0, many(1))), 12).responses[0]
        codes = [result.error_code for result in results.partition_responses]
        assert codes == [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE]
        assert world.broker.metrics.server_errors == 1
        assert client.channel.is_reading


def test_a_request_of_very_many_batches_is_served_over_several_turns() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        request = several(*[("t", 0, batch(b"%d" % i)) for i in range(2000)])
        asked = client.send(request, 12)
        assert 0 < world.partition().log.staged_end < 2000
        results = client.answer_to(asked).responses[0].partition_responses
        assert [result.base_offset for result in results] == list(range(2000))


def test_a_batch_beyond_a_turns_whole_budget_is_served_in_a_turn_of_its_own() -> None:
    with serving() as world:
        world.topic(max_message_bytes=100 << 20)
        large = batch(bytes(60 << 20))
        assert only(world.client().ask(produce_request(large), 12)).base_offset == 0


def test_what_a_worker_has_admitted_is_written_though_no_other_client_sends() -> None:
    with serving() as world:
        world.topic(cleanup_policy="compact")
        held_by_a_worker(world, world.client(), produce_request(many()))
        finish(world)
        world.pass_ms(100)  # No event of any connection ends a turn meanwhile.
        assert world.partition().log.end_offset == len(values_of(world.log_bytes())) == 3000


NO_TEXT = b"\xff" * 32_767  # Read as replacement characters, which take three bytes each.


@pytest.mark.parametrize("version", range(3, 9))
def test_a_topic_name_that_is_longer_when_it_is_answered_costs_its_connection(version: int) -> None:
    with serving() as world:
        world.topic("t")
        client, other = world.client(), world.client()
        request = produce_request(batch(b"a"))
        good = encode(request, version)
        name = len(b"t").to_bytes(2) + b"t"
        at = good.index(name)
        count = good[at - 4 : at]
        assert count == (1).to_bytes(4)
        bad_topic = len(NO_TEXT).to_bytes(2) + NO_TEXT + good[at + len(name) :]
        body = good[: at - 4] + (2).to_bytes(4) + good[at:] + bad_topic
        header = encode_request_header(RequestHeader(ApiKey.PRODUCE, version, 1, "test"))
        client.feed(header + body)
        world.settle()
        assert not world.broker.failed.done()
        assert not client.channel.is_open
        assert other.ask(produce_request(batch(b"b")), 9).responses[0].partition_responses


def test_memory_of_a_request_whose_client_is_gone_is_free_for_who_waits() -> None:
    """Nothing is written or answered that would end a turn."""
    with serving(socket_request_max_bytes=100_000, queued_max_request_bytes=100_000) as world:
        world.topic(cleanup_policy="compact")
        gone, waiting = world.client(), world.client()
        held_by_a_worker(world, gone, produce_request(many(key=None)))
        gone.close()
        waiting.feed_bytes((99_000).to_bytes(4, "big") + bytes(90_000))
        assert not waiting.channel.is_reading
        finish(world)
        world.pass_ms(100)  # No event of any connection ends a turn meanwhile.
        assert waiting.channel.is_reading


def test_a_leader_that_is_deposed_while_a_worker_admits_appends_nothing() -> None:
    with replicating() as cluster:
        cluster.topic(cleanup_policy="compact")
        leader = cluster.leader()
        workers = leader.broker.scans._workers = HeldWorkers()
        workers.is_holding = True
        topic_id = cluster.log.image.topics_by_name["t"].id
        part = wire.PartitionProduceData(0, many())
        topic = wire.TopicProduceData(topic_id=topic_id, partition_data=[part])
        request = wire.Request(acks=-1, timeout_ms=5_000, topic_data=[topic])

        async def ask() -> wire.Response:
            connection = await cluster.connection(leader)
            return await connection.ask(request, wire.Response, timeout_ms=60_000)

        asked = cluster.loop.create_task(ask())
        cluster.until(lambda: workers.waiting == 1)
        cluster.deny(leader)
        cluster.until(lambda: not leader.partition().is_leader)
        workers.is_holding = False
        answer = cluster.run(asyncio.wait_for(asked, 60)).responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert leader.partition().log.staged_end == leader.partition().log.end_offset == 0
