"""Runs of requests give what the general path of Produce gives: the same answers, the same logs."""

import tracemalloc
from random import Random

import pytest

from ottla.broker.produce import prepared_produce
from ottla.broker.wire.connection import SLICE_SECONDS, Connection
from ottla.broker.wire.memory import LARGE_BYTES
from ottla.model.errors import ErrorCode
from ottla.model.principal import Principal
from ottla.protocol.codec import decode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import produce as wire
from ottla.records.batch import Batch
from ottla.records.record import read_records
from ottla.simulation.world.selector import LOOK_SECONDS
from tests.unit.broker.produce.pairs import Pair, frame_of, two_brokers
from tests.unit.broker.requests import batch, produce_request
from tests.unit.broker.serving import (
    BROKER_RESOURCE,
    LISTENER,
    TOPIC_RESOURCE,
    Closed,
    serving,
)

VERSIONS = range(3, 14)
FRAMES_BEYOND_A_SLICE = 2 + round(SLICE_SECONDS / LOOK_SECONDS)


def corrupt(records: bytearray) -> bytearray:
    records[-1] ^= 1
    return records


def cases() -> dict[str, bytes | bytearray | None]:
    return {
        "one record": batch(b"value"),
        "three records": batch(b"a", b"b", b"c"),
        "gzip": batch(b"a" * 100, codec=1),
        "zstd": batch(b"a" * 100, codec=4),
        "idempotent": batch(b"i", producer_id=7, producer_epoch=0, base_sequence=0),
        "duplicate": batch(b"i", producer_id=7, producer_epoch=0, base_sequence=0),
        "next": batch(b"i", producer_id=7, producer_epoch=0, base_sequence=1),
        "out of order": batch(b"i", producer_id=7, producer_epoch=0, base_sequence=9),
        "older epoch": batch(b"i", producer_id=8, producer_epoch=3, base_sequence=0),
        "bad checksum": corrupt(batch(b"value")),
        "too large": batch(b"x" * 5000),
        "large, but allowed": batch(b"x" * 3000),
        "transactional": batch(
            b"i", producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True
        ),
        "control": batch(b"i", is_control=True),
        "two batches": batch(b"a") + batch(b"b"),
        "no bytes": b"",
        "null": None,
        "a fragment": batch(b"a")[:40],
        "garbage": bytes(range(100)),
    }


@pytest.mark.parametrize("acks", [-1, 1, 0])
def test_runs_and_general_path_answer_alike_in_every_version(
    monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds, max_message_bytes=4000)
        for version in VERSIONS:
            for records in cases().values():
                pair.tell(produce_request(records, pair.topic(version), acks=acks), version)
        assert len(worlds[0].log_bytes()) > 10_000


@pytest.mark.parametrize("version", [4, 6, 8, 11, 13])
def test_requests_that_arrive_together_are_answered_in_order_and_alike(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Good ones and bad ones mixed, cut anywhere: what a pipelining client may send."""
    chance = Random(version)
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds, max_message_bytes=4000, partitions=3)
        every = list(cases().values())
        plain = every[:4]
        index = 0
        for turn in range(60):
            changes = (0.1, 0.5, 1)[turn % 3]  # How often the next one is for another partition.
            frames = []
            for _ in range(chance.randrange(1, 100)):
                pair.count += 1
                records = chance.choice(plain if chance.random() < 0.9 else every)
                index = chance.randrange(pair.partitions) if chance.random() < changes else index
                acks = 1 if chance.random() < 0.95 else 0
                request = produce_request(records, pair.topic(version), index, acks=acks)
                body = frame_of(request, version, pair.count)
                frames.append(len(body).to_bytes(4, "big") + body)
            stream = b"".join(frames)
            cut = chance.randrange(len(stream)) if turn % 2 else len(stream)
            for part in (stream[:cut], stream[cut:]):
                for client, world in zip(pair.clients, worlds, strict=True):
                    client.feed_bytes(part)
                    world.settle()
            pair.compare()
        assert sum(len(worlds[0].log_bytes(partition=i)) for i in range(3)) > 100_000


def test_a_frame_that_is_too_long_is_refused_behind_good_ones_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with two_brokers(monkeypatch, socket_request_max_bytes=400) as worlds:
        pair = Pair(worlds)
        pair.tell(produce_request(batch(b"first")), 12)
        stream = b""
        for value in (b"x" * 100, b"x" * 100, b"x" * 500):  # Sizes of two bytes, all of them.
            pair.count += 1
            body = frame_of(produce_request(batch(value)), 12, pair.count)
            stream += len(body).to_bytes(4, "big") + body
        for client, world in zip(pair.clients, worlds, strict=True):
            client.feed_bytes(stream)
            world.settle()
        assert not pair.clients[0].channel.is_open
        pair.compare()


@pytest.mark.parametrize("acks", [1, 0])
def test_a_run_that_cannot_be_written_is_refused_alike(
    monkeypatch: pytest.MonkeyPatch, acks: int
) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds)
        frame = b""
        for _ in range(5):
            pair.count += 1
            body = frame_of(produce_request(batch(b"a" * 100), "t", acks=acks), 12, pair.count)
            frame += len(body).to_bytes(4, "big") + body
        pair.tell(produce_request(batch(b"before")), 12)
        for world in worlds:
            world.disk.capacity_bytes = world.disk.used_bytes + 10
        for client, world in zip(pair.clients, worlds, strict=True):
            client.feed_bytes(frame)
            world.settle()
        pair.compare()
        assert len(worlds[0].log_bytes()) == len(batch(b"before"))


def test_of_a_run_only_that_is_refused_which_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Several partitions' requests are answered as one, and only the first one's have room."""
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds, partitions=3)
        for index in range(3):
            pair.tell(produce_request(batch(b"before"), "t", index), 12)
        stream = b""
        for index in (0, 1, 0, 2, 1):
            pair.count += 1
            body = frame_of(produce_request(batch(b"a" * 100), "t", index), 12, pair.count)
            stream += len(body).to_bytes(4, "big") + body
        answered = len(pair.clients[0].frames())
        for client, world in zip(pair.clients, worlds, strict=True):
            world.disk.capacity_bytes = world.disk.used_bytes + 2 * len(batch(b"a" * 100)) + 10
            client.feed_bytes(stream)
            world.settle()
        errors = [
            decode(wire.Response, frame[5:], 12).responses[0].partition_responses[0].error_code
            for frame in pair.clients[0].frames()[answered:]
        ]
        failed = ErrorCode.KAFKA_STORAGE_ERROR
        assert errors == [0, failed, 0, failed, failed]
        pair.compare()


def test_bad_requests_are_answered_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds)
        for version in VERSIONS:
            topic = pair.topic(version)
            good = batch(b"value")
            pair.tell(produce_request(good, "unknown" if version < 13 else b"u" * 16), version)
            pair.tell(produce_request(good, topic, 1), version)
            pair.tell(produce_request(good, topic, -1), version)
            pair.tell(produce_request(good, topic, acks=2), version)
            pair.tell(produce_request(good, topic, acks=-2), version)
            pair.tell(produce_request(good, topic), version, trailing=b"more")
            pair.tell(produce_request(good, "" if version < 13 else bytes(16)), version)
            request = produce_request(good, topic)
            request.transactional_id = "some transaction"
            pair.tell(request, version)


def test_several_partitions_and_topics_are_served_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds, partitions=2)
        for version in VERSIONS:
            request = produce_request(batch(b"a"), pair.topic(version))
            more = produce_request(batch(b"b"), pair.topic(version), 1).topic_data
            request.topic_data[0].partition_data += more[0].partition_data
            pair.tell(request, version)
            request = produce_request(batch(b"a"), pair.topic(version))
            request.topic_data *= 2
            pair.tell(request, version)
            request = produce_request(batch(b"a"), pair.topic(version))
            request.topic_data = []
            pair.tell(request, version)


@pytest.mark.parametrize(
    "config",
    [
        {"message_timestamp_type": "LogAppendTime"},
        {"compression_type": "gzip"},
        {"cleanup_policy": "compact"},
        {"message_timestamp_before_max_ms": 1000},
        {"message_timestamp_after_max_ms": 1000},
    ],
)
def test_topics_with_rules_of_their_own_are_served_alike(
    monkeypatch: pytest.MonkeyPatch, config: dict[str, object]
) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds, **config)
        for version in (3, 8, 12, 13):
            for records in cases().values():
                pair.tell(produce_request(records, pair.topic(version)), version)
            far = worlds[0].now + 10_000_000
            pair.tell(produce_request(batch(b"far", at=far), pair.topic(version)), version)
            pair.tell(produce_request(batch(b"old", at=0), pair.topic(version)), version)


@pytest.mark.parametrize("timestamp_type", ["CreateTime", "LogAppendTime"])
def test_large_frames_are_served_alike_though_they_are_not_copied(
    monkeypatch: pytest.MonkeyPatch, timestamp_type: str
) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds, message_timestamp_type=timestamp_type)
        value = b"x" * (LARGE_BYTES * 2)
        options = {"producer_id": 7, "producer_epoch": 0}
        for sequence in (0, 0, 5, 1):
            records = batch(value, base_sequence=sequence, **options)
            pair.tell(produce_request(records, "t"), 12)
            pair.tell(produce_request(corrupt(records), "t"), 12)


@pytest.mark.parametrize("size", [100, 20_000, 100_000])
def test_what_a_turn_receives_stays_whole_until_it_is_written(size: int) -> None:
    """More than there is room for is received in one turn, by several connections."""
    with serving() as world:
        world.topic()
        clients = [world.client() for _ in range(20)]
        for client in clients:
            client.ask(produce_request(batch(b"first")), 12)
        written = [b"first"] * len(clients)
        for _ in range(3):
            for number, client in enumerate(clients):
                value = bytes([number]) * size
                client.send(produce_request(batch(value)), 12)
                written.append(value)
            world.settle()
        assert values_in(world.log_bytes()) == written


def values_in(log: bytes) -> list[bytes | None]:
    found: list[bytes | None] = []
    while log:
        one = Batch.parse(log)
        assert one.is_valid
        assert one.base_offset == len(found)
        found += [record.value for record in read_records(one, 1 << 20)]
        log = log[one.size :]
    return found


def test_cut_frames_are_refused_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds)
        for version in (3, 9, 13):
            frame = frame_of(produce_request(batch(b"value"), pair.topic(version)), version, 1)
            for end in range(1, len(frame)):
                pair.feed(frame[:end])


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_cut_frame_behind_muted_connection_closes_only_its_connection(version: int) -> None:
    """Frames of a muted connection are served from a buffer that ends with the cut frame."""
    with serving() as world:
        topic_id = world.topic("t")
        other = world.client()
        topic = topic_id if version >= 13 else "t"
        frame = frame_of(produce_request(batch(b"value"), topic), version, 1)
        records_at = frame.index(bytes(batch(b"value")))
        asking = encode_request_header(RequestHeader(18, 0, 1, ""))
        for end in range(records_at - 6, records_at + 4):
            other.ask(produce_request(batch(b"x"), topic), version)
            client = world.client()
            client.feed(frame)
            world.settle()
            errors = world.broker.metrics.protocol_errors
            client.feed(*[asking] * FRAMES_BEYOND_A_SLICE, frame[:end])
            assert not client.channel.is_reading
            world.settle()
            assert not client.channel.is_open
            assert world.broker.metrics.protocol_errors == errors + 1
        assert other.channel.is_open
        assert world.broker.metrics.server_errors == 0


def test_exception_of_the_fast_path_closes_the_connection_without_the_reference(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The reference would append again what was staged before the exception."""

    def fails(*_: object) -> None:
        raise ValueError("not foreseen")

    with serving() as world:
        world.topic("t")
        client = world.client()
        client.ask(produce_request(batch(b"a"), "t"), 12)
        monkeypatch.setattr(world.broker.prepared_produces, "_expect", fails)
        client.send(produce_request(batch(b"b"), "t"), 12)
        world.settle()
        assert not client.channel.is_open
        assert "not foreseen" in caplog.text
        assert len(world.errors) == 1  # A simulation is told of it.
        world.errors.clear()
        monkeypatch.undo()
        assert world.client().ask(produce_request(batch(b"c"), "t"), 12).responses
        assert values_in(world.log_bytes()) == [b"a", b"b", b"c"]


def test_beginnings_of_requests_are_remembered_within_a_bound_of_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Client ids of any length, each with requests of many sizes."""
    bytes_max = 1 << 20
    monkeypatch.setattr(prepared_produce, "PREPARED_BYTES_MAX", bytes_max)
    records = [batch(b"x" * size) for size in range(0, 400, 10)]
    with serving() as world:
        world.topic("t")
        client = world.client()
        client.ask(produce_request(batch(b"a"), "t"), 8)
        tracemalloc.start()
        try:
            started, _ = tracemalloc.get_traced_memory()
            for number in range(100):
                name = f"{number:04}".ljust(600 if number % 3 else 32_000, "c")
                for each in records[: 20 if number % 3 else 1]:
                    client.send(produce_request(each, "t"), 8, name)
                world.settle()
                client.channel.sent.clear()
            kept = tracemalloc.get_traced_memory()[0] - started
        finally:
            tracemalloc.stop()
        assert client.channel.is_open
        assert kept < 1.5 * bytes_max
        assert world.broker.prepared_produces._by_prefix


@pytest.mark.parametrize("size", [b"\xff" * 10, b"\x80" * 200, b"\xff\xff\xff\xff\x0f", b"\xff"])
def test_records_of_an_absurd_size_are_refused_alike(
    monkeypatch: pytest.MonkeyPatch, size: bytes
) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds)
        for version in (3, 9):
            good = frame_of(produce_request(batch(b"value"), "t"), version, 1)
            pair.feed(good)
            prefix = good[: good.index(bytes(batch(b"value"))) - (1 if version == 9 else 4)]
            pair.feed(prefix + size)
            pair.feed(prefix + size + bytes(200))


def test_what_was_prepared_is_forgotten_when_the_topic_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds)
        pair.tell(produce_request(batch(b"first")), 12)
        for world in worlds:
            world.delete("t")
            world.topic("t")
        pair.tell(produce_request(batch(b"second")), 12)
        assert len(worlds[0].log_bytes()) == len(batch(b"second"))


@pytest.mark.parametrize(
    ("kind", "name", "config"),
    [
        (TOPIC_RESOURCE, "t", "max.message.bytes"),
        (TOPIC_RESOURCE, "t", "internal.segment.bytes"),
        (BROKER_RESOURCE, "", "message.max.bytes"),
    ],
)
def test_a_bound_that_changes_holds_for_what_was_prepared_before(
    monkeypatch: pytest.MonkeyPatch, kind: int, name: str, config: str
) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds)
        records = batch(bytes(3000))
        counts = []
        for bound in (None, len(records) - 1, len(records)):
            if bound is not None:
                for world in worlds:
                    world.configure(name, config, bound, kind)
            pair.tell(produce_request(records), 12)
            pair.tell(produce_request(records), 12)
            counts.append(len(worlds[0].log_bytes()) // len(records))
        assert counts == [2, 2, 4]


def test_a_disk_that_is_full_or_fails_is_answered_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    with two_brokers(monkeypatch) as worlds:
        pair = Pair(worlds)
        for version in VERSIONS:
            topic = pair.topic(version)
            for world in worlds:
                world.disk.capacity_bytes = world.disk.used_bytes + 10
            pair.tell(produce_request(batch(b"a" * 100), topic), version)
            pair.tell(produce_request(batch(b"b" * 100), topic), version)
            pair.tell(produce_request(batch(b"b" * 100), topic, acks=0), version)
            for world in worlds:
                world.disk.capacity_bytes = 1 << 40
                world.pass_ms(2000)
            pair.tell(produce_request(batch(b"c" * 100), topic), version)
        assert worlds[0].log_bytes()


def test_syncing_before_the_answer_is_done_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    with two_brokers(monkeypatch, log_flush_interval_messages=1) as worlds:
        pair = Pair(worlds)
        for version in VERSIONS:
            for records in cases().values():
                pair.tell(produce_request(records, pair.topic(version)), version)


def test_many_topics_in_turn_do_not_prepare_each_request_again() -> None:
    with serving() as world:
        for name in ("short", "a-longer-name"):
            world.topic(name)
        client = world.client()
        for name in ("short", "a-longer-name"):
            client.ask(produce_request(batch(b"a"), name), 12)
        prepared = dict(world.broker.prepared_produces._by_prefix)
        for name in ("short", "a-longer-name") * 3:
            client.ask(produce_request(batch(b"a"), name), 12)
        assert len(prepared) == 2
        after = world.broker.prepared_produces._by_prefix
        assert all(after[key] is known for key, known in prepared.items())


def test_prefix_of_an_allowed_principal_does_not_serve_a_refused_one() -> None:
    """A stub authoriser refuses one of two principals that send the same bytes."""
    alice, mallory = Principal("User", "alice"), Principal("User", "mallory")
    with serving() as world:
        world.topic("t")
        dispatcher = world.broker.dispatchers[LISTENER]

        def authorised(
            connection: Connection, frame: memoryview, position: int, end: int, limit: int
        ) -> int:
            if connection.principal == mallory:
                connection.close()
                return end
            return dispatcher._serve(connection, frame, position, end, limit)

        dispatcher.serve = world.broker.prepared_produces.before(authorised)
        allowed, refused = world.client(), world.client()
        allowed.connection.principal, refused.connection.principal = alice, mallory
        for _ in range(3):
            allowed.ask(produce_request(batch(b"a"), "t"), 12)
        with pytest.raises(Closed):
            refused.ask(produce_request(batch(b"a"), "t"), 12)
        allowed.ask(produce_request(batch(b"a"), "t"), 12)
        assert len(world.log_bytes()) == 4 * len(batch(b"a"))


@pytest.mark.parametrize("partitions", [1, 2])
def test_idempotent_batches_that_could_not_be_written_are_appended_once_when_sent_again(
    partitions: int,
) -> None:
    """One partition goes as a run, two by the general path; both take the sequence back."""
    with serving() as world:
        world.topic("t", partitions)
        client = world.client()

        def send(sequence: int) -> list[int]:
            parts = [
                wire.PartitionProduceData(
                    index,
                    batch(
                        b"%d" % sequence, producer_id=7, producer_epoch=0, base_sequence=sequence
                    ),
                )
                for index in range(partitions)
            ]
            request = wire.Request(
                acks=-1, timeout_ms=1000, topic_data=[wire.TopicProduceData("t", bytes(16), parts)]
            )
            (topic,) = client.ask(request, 12).responses
            return [result.error_code for result in topic.partition_responses]

        assert send(0) == [0] * partitions
        assert send(1) == [0] * partitions
        world.disk.capacity_bytes = world.disk.used_bytes + 10
        assert send(2) == [ErrorCode.KAFKA_STORAGE_ERROR] * partitions
        world.disk.capacity_bytes = 1 << 40
        world.pass_ms(2000)
        assert [send(2), send(2), send(3)] == [[0] * partitions] * 3
        assert values_in(world.log_bytes()) == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("size", [100, 5000, 50_000])
def test_requests_of_several_partitions_stay_whole_until_they_are_written(size: int) -> None:
    """Batches are appended where they were received: in the shared buffer, or a large frame."""
    with serving() as world:
        world.topic("t", 4)
        clients = [world.client() for _ in range(10)]
        for turn in range(3):
            for number, client in enumerate(clients):
                parts = [
                    wire.PartitionProduceData(index, batch(bytes([turn, number, index]) * size))
                    for index in range(4)
                ]
                topic = wire.TopicProduceData("t", bytes(16), parts)
                client.send(wire.Request(acks=1, timeout_ms=1000, topic_data=[topic]), 12)
            world.settle()
        for index in range(4):
            assert values_in(world.log_bytes(partition=index)) == [
                bytes([turn, number, index]) * size for turn in range(3) for number in range(10)
            ]
