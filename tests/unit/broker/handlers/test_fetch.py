"""Fetch against Kafka's meaning: waiting, limits, epochs, sessions, and what is left behind."""

import asyncio
import errno
import struct

import pytest

from ottla.broker.handlers.fetch import WAITING_MAX
from ottla.broker.wire.batch_scans import TURN_US
from ottla.model.errors import ErrorCode
from ottla.model.types import WallTime
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages import delete_records
from ottla.protocol.messages import fetch as wire
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from tests.unit.broker.replicating import replicating
from tests.unit.broker.requests import (
    batch,
    fetch_request,
    only,
    produce_request,
    values_of,
    write,
)
from tests.unit.broker.serving import Client, World, serving

VERSIONS = range(4, 19)
BY_ID_SINCE = 13
READ_COMMITTED = 1


def start_waiting(
    client: Client, *partitions: tuple[str | bytes, int, int], version: int = 12, **options: int
) -> int:
    options = {"max_wait_ms": 10_000, **options}
    asked = client.send(fetch_request(*partitions, **options), version)
    client.world.settle()
    assert not client.has_answer(asked)
    return asked


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_fetched_in_every_version(version: int) -> None:
    with serving() as world:
        topic_id = world.topic()
        write(world, b"a", b"b")
        write(world, b"c")
        topic = topic_id if version >= BY_ID_SINCE else "t"
        answer = world.client().ask(fetch_request((topic, 0, 0)), version)
        part = only(answer)
        assert part.error_code == 0
        assert values_of(part.records) == [b"a", b"b", b"c"]
        assert (part.high_watermark, part.last_stable_offset) == (3, 3)
        assert part.aborted_transactions is None
        assert part.preferred_read_replica == -1
        assert answer.throttle_time_ms == answer.error_code == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_the_hand_made_answer_is_what_the_codec_would_write(version: int) -> None:
    with serving() as world:
        topic_id = world.topic("t", 2)
        write(world, b"a")
        topic = topic_id if version >= BY_ID_SINCE else "t"
        unknown = b"u" * 16 if version >= BY_ID_SINCE else "unknown"
        client = world.client()
        request = fetch_request((topic, 0, 0), (topic, 1, 0), (unknown, 0, 0), isolation_level=1)
        client.ask(request, version)
        frame = client.frames()[-1]
        body = frame[5:] if version >= 12 else frame[4:]
        assert encode(decode(wire.Response, body, version), version) == body


def test_a_fetch_begins_at_the_batch_that_holds_its_offset() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        write(world, b"d")
        part = only(world.client().ask(fetch_request(("t", 0, 1)), 12))
        assert values_of(part.records) == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("version", [4, 12, 13])
@pytest.mark.parametrize("offset", [-1, 4, 100])
def test_an_offset_out_of_range_is_refused_at_once(version: int, offset: int) -> None:
    with serving() as world:
        topic_id = world.topic()
        write(world, b"a", b"b", b"c")
        topic = topic_id if version >= BY_ID_SINCE else "t"
        client = world.client()
        asked = client.send(fetch_request((topic, 0, offset), max_wait_ms=5000), version)
        part = only(client.answers()[asked])
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert (part.high_watermark, part.last_stable_offset, part.log_start_offset) == (-1, -1, -1)
        assert not part.records


def test_unknown_topics_partitions_and_ids_have_their_own_codes() -> None:
    with serving() as world:
        topic_id = world.topic()
        client = world.client()

        def code(topic: str | bytes, partition: int, version: int) -> int:
            return only(client.ask(fetch_request((topic, partition, 0)), version)).error_code

        assert code("unknown", 0, 12) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code("", 0, 12) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code("t", 1, 12) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code("t", -1, 4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code(b"?" * 16, 0, 13) == ErrorCode.UNKNOWN_TOPIC_ID
        assert code(topic_id, 1, 13) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_nobody_but_consumers_is_served_while_there_is_one_replica() -> None:
    with serving() as world:
        world.topic()
        request = fetch_request(("t", 0, 0), replica_id=2)
        part = only(world.client().ask(request, 12))
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Waiting.


def test_a_fetch_that_finds_nothing_waits_until_something_is_written() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        asked = start_waiting(client, ("t", 0, 0))
        world.pass_ms(5_000)
        assert not client.has_answer(asked)
        before = world.now
        write(world, b"news")
        assert client.has_answer(asked)
        assert world.now - before < 10
        assert values_of(only(client.answers()[asked]).records) == [b"news"]


def test_a_fetch_waits_no_longer_than_it_asked_to() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        asked = start_waiting(client, ("t", 0, 0), max_wait_ms=500)
        world.pass_ms(490)
        assert not client.has_answer(asked)
        world.pass_ms(20)
        part = only(client.answers()[asked])
        assert (part.error_code, part.high_watermark, bytes(part.records)) == (0, 0, b"")


def test_a_fetch_that_does_not_wait_is_answered_empty() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        for request in (
            fetch_request(("t", 0, 0), max_wait_ms=0),
            fetch_request(("t", 0, 0), max_wait_ms=-1),
            fetch_request(("t", 0, 0), max_wait_ms=9999, min_bytes=0),
            fetch_request(max_wait_ms=9999),
        ):
            assert client.send(request, 12) in client.answers()


def test_min_bytes_are_waited_for_over_all_partitions() -> None:
    with serving() as world:
        world.topic("t", 3)
        client = world.client()
        size = len(batch(b"x" * 100))
        asked = start_waiting(client, ("t", 0, 0), ("t", 1, 0), ("t", 2, 0), min_bytes=3 * size)
        write(world, b"x" * 100, partition=0)
        write(world, b"x" * 100, partition=1)
        assert not client.has_answer(asked)
        write(world, b"x" * 100, partition=0)
        [topic] = client.answers()[asked].responses
        assert [len(values_of(part.records)) for part in topic.partitions] == [2, 1, 0]


def test_fewer_than_min_bytes_are_given_when_the_time_is_over() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        asked = start_waiting(client, ("t", 0, 0), min_bytes=10_000, max_wait_ms=300)
        write(world, b"little")
        assert not client.has_answer(asked)
        world.pass_ms(300)
        assert values_of(only(client.answers()[asked]).records) == [b"little"]


def test_what_is_not_news_does_not_end_a_wait() -> None:
    """A duplicate, a refused batch, another partition: nothing of that can be read."""
    with serving() as world:
        world.topic("t", 2)
        options = {"producer_id": 7, "producer_epoch": 0}
        write(world, b"once", base_sequence=0, **options)
        client = world.client()
        asked = start_waiting(client, ("t", 0, 1))
        write(world, b"once", base_sequence=0, **options)
        out_of_order = batch(b"x", base_sequence=9, **options)
        part = only(world.client().ask(produce_request(out_of_order), 12))
        assert part.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        write(world, b"elsewhere", partition=1)
        world.settle()
        assert not client.has_answer(asked)
        write(world, b"news")
        assert values_of(only(client.answers()[asked]).records) == [b"news"]


def test_waiting_does_not_hold_up_other_requests_but_answers_leave_in_order() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        waiting = start_waiting(client, ("t", 0, 0))
        at_once = client.send(produce_request(batch(b"own")), 12)
        world.settle()
        assert list(client.answers()) == [waiting, at_once]


def test_a_topic_that_is_deleted_ends_the_wait_for_it() -> None:
    with serving() as world:
        topic_id = world.topic("t", 2)
        client = world.client()
        by_name = start_waiting(client, ("t", 0, 0), ("t", 1, 0))
        by_id = start_waiting(client, (topic_id, 0, 0), version=13)
        world.delete("t")
        world.settle()
        answers = client.answers()
        codes = [part.error_code for part in answers[by_name].responses[0].partitions]
        assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in codes
        assert only(answers[by_id]).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_nothing_is_left_of_a_client_that_goes_while_its_fetches_wait() -> None:
    with serving() as world:
        world.topic("t", 2)
        staying, leaving = world.client(), world.client()
        start_waiting(staying, ("t", 0, 0))
        for _ in range(3):
            start_waiting(leaving, ("t", 0, 0), ("t", 1, 0))
        assert len(world.partition("t", 0).watching) == 4
        timers = len(live_timers(world))
        leaving.close()
        assert len(world.partition("t", 0).watching) == 1
        assert not world.partition("t", 1).watching
        assert len(live_timers(world)) == timers - 3
        assert leaving.connection not in world.broker.connections.open
        write(world, b"for those who stay")
        assert not leaving.channel.sent


def live_timers(world: World) -> list[object]:
    return [handle for handle in world.loop._scheduled if not handle.cancelled()]


def test_nothing_is_left_of_a_fetch_that_was_answered() -> None:
    with serving() as world:
        world.topic("t", 2)
        world.pass_ms(2)
        timers = len(live_timers(world))
        client = world.client()
        for offset in range(5):
            asked = start_waiting(client, ("t", 0, offset), ("t", 1, 0))
            write(world, b"x")
            assert client.has_answer(asked)
        assert not world.partition("t", 0).watching
        assert not world.partition("t", 1).watching
        world.pass_ms(2)
        assert len(live_timers(world)) == timers
        assert len(client.connection.on_closed) == 1


# Limits.


def test_a_partition_gives_no_more_than_its_limit() -> None:
    with serving() as world:
        world.topic()
        for _ in range(10):
            write(world, b"x" * 100)
        size = len(batch(b"x" * 100))
        part = only(
            world.client().ask(fetch_request(("t", 0, 0), partition_max_bytes=size * 3), 12)
        )
        assert len(part.records) == size * 3
        # A batch that the limit cuts is cut, as in Kafka.
        limit = size * 3 + 7
        part = only(world.client().ask(fetch_request(("t", 0, 0), partition_max_bytes=limit), 12))
        assert len(part.records) == limit
        assert len(values_of(part.records)) == 3


@pytest.mark.parametrize("limits", [{"partition_max_bytes": 1}, {"max_bytes": 1}, {"max_bytes": 0}])
def test_at_least_one_whole_batch_is_given(limits: dict[str, int]) -> None:
    with serving() as world:
        world.topic("t", 2)
        for index in (0, 1):
            write(world, b"x" * 5000, partition=index)
            write(world, b"y" * 5000, partition=index)
        answer = world.client().ask(fetch_request(("t", 0, 0), ("t", 1, 0), **limits), 12)
        first, second = answer.responses[0].partitions
        assert values_of(first.records) == [b"x" * 5000]
        assert not values_of(second.records)


def test_the_whole_answer_gives_no_more_than_its_limit() -> None:
    with serving() as world:
        world.topic("t", 4)
        size = len(batch(b"x" * 1000))
        for index in range(4):
            write(world, b"x" * 1000, partition=index)
        wanted = [("t", index, 0) for index in range(4)]
        answer = world.client().ask(fetch_request(*wanted, max_bytes=size * 2), 12)
        sizes = [len(part.records) for part in answer.responses[0].partitions]
        assert sizes == [size, size, 0, 0]


def test_the_broker_has_a_limit_of_its_own() -> None:
    with serving(fetch_max_bytes=1024) as world:
        world.topic()
        for _ in range(10):
            write(world, b"x" * 400)
        part = only(world.client().ask(fetch_request(("t", 0, 0), max_bytes=1 << 30), 12))
        assert len(part.records) == 1024


# Epochs, transactions, the log's start.


def with_epochs(
    offset: int, current: int = -1, last_fetched: int = -1, **options: int
) -> wire.Request:
    request = fetch_request(("t", 0, offset), **options)
    part = request.topics[0].partitions[0]
    part.current_leader_epoch, part.last_fetched_epoch = current, last_fetched
    return request


def test_another_leader_epoch_than_ours_is_told() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        assert only(client.ask(with_epochs(0, current=0), 12)).error_code == 0
        part = only(client.ask(with_epochs(0, current=1), 12))
        assert part.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        world.restart()
        epoch = world.partition().leader_epoch
        assert epoch > 0
        part = only(world.client().ask(with_epochs(0, current=epoch - 1), 12))
        assert part.error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_log_that_parted_from_the_clients_is_told_at_once() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        world.restart()
        write(world, b"c")
        client = world.client()
        # Of epoch 0 there are only two records here; the client says that it has ten.
        for offset in (3, 10):
            asked = client.send(
                with_epochs(offset, last_fetched=0, max_wait_ms=1000, isolation_level=1), 12
            )
            part = only(client.answers()[asked])
            assert part.error_code == 0
            assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 2)
            assert (part.high_watermark, bytes(part.records)) == (3, b"")
        part = only(client.ask(with_epochs(2, last_fetched=0), 12))
        assert part.diverging_epoch.epoch == -1
        assert values_of(part.records) == [b"c"]
        part = only(client.ask(with_epochs(3, last_fetched=1000), 12))
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_epoch_from_before_the_log_is_out_of_range() -> None:
    with serving() as world:
        world.topic()
        world.restart()
        write(world, b"a", b"b")
        world.client().ask(
            delete_records.Request(
                [
                    delete_records.DeleteRecordsTopic(
                        "t", [delete_records.DeleteRecordsPartition(0, 1)]
                    )
                ]
            )
        )
        part = only(world.client().ask(with_epochs(0, last_fetched=2), 12))
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_read_committed_lists_aborted_transactions_if_there_are_any() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a")
        part = only(
            world.client().ask(fetch_request(("t", 0, 0), isolation_level=READ_COMMITTED), 12)
        )
        assert part.aborted_transactions == []
        assert values_of(part.records) == [b"a"]


def test_what_is_staged_and_not_written_is_not_seen() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        client.send(produce_request(batch(b"staged")), 12)
        asked = client.send(fetch_request(("t", 0, 0)), 12)
        world.settle()
        part = only(client.answers()[asked])
        assert (part.high_watermark, bytes(part.records)) == (0, b"")


# Sessions.


def opened(client: Client, *partitions: tuple[str, int, int], **options: int) -> wire.Response:
    return client.ask(fetch_request(*partitions, session_epoch=0, **options), 12)


def test_a_session_tells_only_what_is_new() -> None:
    with serving() as world:
        world.topic("t", 3)
        client = world.client()
        first = opened(client, ("t", 0, 0), ("t", 1, 0), ("t", 2, 0))
        assert first.session_id > 0
        assert len(first.responses[0].partitions) == 3
        write(world, b"news", partition=1)
        session = {"session_id": first.session_id}
        second = client.ask(fetch_request(session_epoch=1, **session), 12)
        assert second.session_id == first.session_id
        assert only(second).partition_index == 1
        moved = fetch_request(("t", 1, 1), session_epoch=2, **session)
        assert client.ask(moved, 12).responses == []


def test_a_session_waits_like_any_fetch_and_forgets_what_it_is_told_to() -> None:
    with serving() as world:
        world.topic("t", 2)
        client = world.client()
        session_id = opened(client, ("t", 0, 0), ("t", 1, 0)).session_id
        forget = fetch_request(session_id=session_id, session_epoch=1, max_wait_ms=5000)
        forget.forgotten_topics_data = [wire.ForgottenTopic("t", partitions=[0])]
        asked = client.send(forget, 12)
        world.settle()
        write(world, b"forgotten", partition=0)
        assert not client.has_answer(asked)
        write(world, b"kept", partition=1)
        assert values_of(only(client.answers()[asked]).records) == [b"kept"]


def test_wrong_sessions_and_epochs_are_refused() -> None:
    with serving() as world:
        topic_id = world.topic()
        client = world.client()
        session_id = opened(client, ("t", 0, 0)).session_id

        def code(version: int = 12, **session: int) -> int:
            answer = client.ask(fetch_request(**session), version)
            assert (answer.session_id, answer.responses) == (0, [])
            return answer.error_code

        unknown = session_id % 1000 + 1
        assert code(session_id=unknown, session_epoch=1) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        wrong = code(session_id=session_id, session_epoch=7)
        assert wrong == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        wrong = code(13, session_id=session_id, session_epoch=1)
        assert wrong == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        # After all of that the session still goes on where it was.
        assert client.ask(fetch_request(session_id=session_id, session_epoch=1), 12).error_code == 0
        closing = fetch_request(("t", 0, 0), session_id=session_id, session_epoch=-1)
        assert client.ask(closing, 12).session_id == 0
        assert len(world.broker.fetch_sessions) == 0
        assert topic_id


def test_an_error_in_a_session_is_told_until_it_is_gone() -> None:
    with serving() as world:
        world.topic("t", 1)
        client = world.client()
        first = opened(client, ("t", 0, 0), ("t", 1, 0))
        session = {"session_id": first.session_id}
        for epoch in (1, 2):
            part = only(client.ask(fetch_request(session_epoch=epoch, **session), 12))
            assert (part.partition_index, part.error_code) == (1, 3)
        world.grow("t", 2)
        part = only(client.ask(fetch_request(session_epoch=3, **session), 12))
        assert (part.partition_index, part.error_code, part.high_watermark) == (1, 0, 0)
        assert client.ask(fetch_request(session_epoch=4, **session), 12).responses == []


def test_a_busy_partition_does_not_starve_the_others_of_a_session() -> None:
    with serving() as world:
        world.topic("t", 2)
        client = world.client()
        for index in (0, 1):
            write(world, b"x" * 1000, partition=index)
            write(world, b"y" * 1000, partition=index)
        limit = {"max_bytes": len(batch(b"x" * 1000))}
        answer = opened(client, ("t", 0, 0), ("t", 1, 0), **limit)
        sizes = {p.partition_index: len(p.records) for p in answer.responses[0].partitions}
        assert sizes[0] > sizes[1] == 0
        session = {"session_id": answer.session_id, "session_epoch": 1, **limit}
        answer = client.ask(fetch_request(("t", 0, 1), **session), 12)
        sizes = {p.partition_index: len(p.records) for p in answer.responses[0].partitions}
        assert sizes[1] > sizes.get(0, 0)


# Failures.


def test_a_disk_that_cannot_be_read_takes_its_directory_offline() -> None:
    with serving(directories=["/data-0", "/data-1"]) as world:
        world.topic("t", 2)
        where = {index: world.partition("t", index).log.directory for index in (0, 1)}
        for index in (0, 1):
            for _ in range(5):
                write(world, b"x", partition=index)
        lost = next(index for index, path in where.items() if path.startswith("/data-1"))
        kept = 1 - lost
        world.restart()  # So that nobody remembers where which batch lies.
        waiting = world.client()
        waits_for_lost = start_waiting(waiting, ("t", lost, 5))
        world.disk.fail("read", errno.EIO, path_contains=f"/data-1/t-{lost}")
        client = world.client()
        answer = client.ask(fetch_request(("t", lost, 3), ("t", kept, 0)), 12)
        codes = {p.partition_index: p.error_code for p in answer.responses[0].partitions}
        assert codes == {lost: ErrorCode.KAFKA_STORAGE_ERROR, kept: 0}
        assert only(waiting.answers()[waits_for_lost]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not world.broker.failed.done()


def test_damage_that_a_fetch_meets_is_never_served_and_costs_only_its_partition() -> None:
    with serving() as world:
        world.topic("t", 2)
        for index in (0, 1):
            for _ in range(5):
                write(world, b"x", partition=index)
        world.restart()  # So that nobody remembers where which batch lies.
        size = len(batch(b"x"))
        world.disk.flip_bit("/data/t-0/00000000000000000000.log", size + 11, 2)
        waiting = world.client()
        asked = start_waiting(waiting, ("t", 0, 5), ("t", 1, 5))
        client = world.client()
        answer = client.ask(fetch_request(("t", 0, 3), ("t", 1, 3)), 12)
        codes = {p.partition_index: p.error_code for p in answer.responses[0].partitions}
        assert codes == {0: ErrorCode.KAFKA_STORAGE_ERROR, 1: 0}
        assert waiting.has_answer(asked)
        assert write(world, b"y", partition=1) == 5
        assert not world.broker.failed.done()


def test_damage_that_is_met_while_waiting_ends_the_wait() -> None:
    with serving() as world:
        world.topic("t")
        for _ in range(5):
            write(world, b"x")
        world.restart()
        size = len(batch(b"x"))
        client = world.client()
        asked = start_waiting(client, ("t", 0, 3), min_bytes=1000)
        world.partition().log.segments[0].boundaries.clear()
        world.disk.flip_bit("/data/t-0/00000000000000000000.log", size + 11, 2)
        world.client().send(produce_request(batch(b"y")), 12)
        world.end_turn()
        assert only(client.answers()[asked]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not world.broker.failed.done()


# Transactions, as Apache Kafka left them in a directory that was moved here.

ABORT, COMMIT = 0, 1


def write_as_moved_in(world: World, *batches: bytearray) -> None:
    partition = world.partition()
    for data in batches:
        one = Batch(data)
        one.assign(partition.log.end_offset, 0)
        partition.log.append([one], WallTime(world.now))
    partition.high_watermark = partition.log.end_offset


def transactional(producer_id: int, sequence: int, *values: bytes) -> bytearray:
    return batch(
        *values,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )


def marker(producer_id: int, kind: int) -> bytearray:
    record = Record(0, 0, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=True,
        is_control=True,
    )


def committed(world: World, offset: int) -> wire.PartitionData:
    request = fetch_request(("t", 0, offset), isolation_level=READ_COMMITTED)
    return only(world.client().ask(request, 12))


def test_an_open_transaction_hides_all_that_follows_from_who_reads_committed() -> None:
    with serving() as world:
        world.topic()
        write(world, b"before")
        write_as_moved_in(world, transactional(7, 0, b"open"))
        write(world, b"after")
        part = committed(world, 0)
        assert (part.last_stable_offset, part.high_watermark) == (1, 3)
        assert values_of(part.records) == [b"before"]
        client = world.client()
        asked = start_waiting(client, ("t", 0, 1), isolation_level=READ_COMMITTED)
        write(world, b"more")
        assert not client.has_answer(asked)
        part = only(world.client().ask(fetch_request(("t", 0, 0)), 12))
        assert values_of(part.records) == [b"before", b"open", b"after", b"more"]
        assert part.aborted_transactions is None
        write_as_moved_in(world, marker(7, COMMIT))
        write(world, b"last")
        part = only(client.answers()[asked])
        assert values_of(part.records)[:3] == [b"open", b"after", b"more"]
        assert part.aborted_transactions == []


def test_aborted_transactions_are_listed_where_their_records_are() -> None:
    with serving() as world:
        world.topic()
        write_as_moved_in(
            world,
            transactional(7, 0, b"aborted"),
            transactional(8, 0, b"committed"),
            marker(8, COMMIT),
            marker(7, ABORT),
        )
        write(world, b"after")
        for _ in range(2):
            part = committed(world, 0)
            listed = [(each.producer_id, each.first_offset) for each in part.aborted_transactions]
            assert listed == [(7, 0)]
            assert part.last_stable_offset == 5
            assert committed(world, 4).aborted_transactions == []
            world.restart()


def test_a_follower_never_says_that_an_offset_is_out_of_range() -> None:
    """It may only be behind, and a client that came by old metadata would start all over."""
    with replicating() as cluster:
        cluster.topic()
        cluster.produce(cluster.leader(), b"1", b"2")
        cluster.pass_ms(1000)
        follower = cluster.followers()[0]
        assert cluster.fetch(follower, 2).error_code == 0
        assert cluster.fetch(follower, 3).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert cluster.fetch(cluster.leader(), 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_that_may_be_deposed_never_says_that_an_offset_is_out_of_range() -> None:
    """It was cut off for longer than its session: others may have led, and written, since."""
    with replicating() as cluster:
        cluster.topic()
        leader = cluster.leader()
        cluster.produce(leader, b"1", b"2")
        leader.quorum.is_alone = False
        cluster.run(leader.broker.lifecycle.heartbeat())
        assert cluster.fetch(leader, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        leader.quorum.is_cut_off = True
        cluster.pass_ms(leader.broker.settings.broker_session_timeout_ms)
        assert cluster.fetch(leader, 3).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert cluster.fetch(leader, 2).error_code == 0
        leader.quorum.is_cut_off = False
        cluster.run(leader.broker.lifecycle.heartbeat())
        leader.quorum.known_at = cluster.clock.monotonic() - 1
        assert cluster.fetch(leader, 3).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        leader.quorum.read()
        assert cluster.fetch(leader, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_leader_whose_machine_slept_for_a_session_counts_as_one_that_may_be_deposed() -> None:
    with replicating() as cluster:
        cluster.topic()
        leader = cluster.leader()
        leader.quorum.is_alone = False
        cluster.run(leader.broker.lifecycle.heartbeat())
        assert cluster.fetch(leader, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        cluster.clock.slept_ms = leader.broker.settings.broker_session_timeout_ms
        assert cluster.fetch(leader, 3).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        cluster.run(leader.broker.lifecycle.heartbeat())
        leader.quorum.read()
        assert cluster.fetch(leader, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_an_epoch_that_was_never_written_here_diverges_though_its_offset_is_here() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        world.restart()
        world.restart()
        write(world, b"c")
        assert world.partition().leader_epoch > 1
        part = only(world.client().ask(with_epochs(1, last_fetched=1), 12))
        assert (part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 2)
        assert bytes(part.records) == b""


def test_consumers_read_nothing_at_or_past_the_high_watermark() -> None:
    with replicating() as cluster:
        cluster.topic()
        leader, followers = cluster.leader(), cluster.followers()
        cluster.produce(leader, b"1", b"2")
        cluster.pass_ms(1000)
        for node in followers:
            node.quorum.is_cut_off = True  # They follow on, but are not told of another leader.
        for node in followers[1:]:
            node.kill()  # The ISR does not shrink: what comes now is not committed.
        assert cluster.produce(leader, b"3", acks=1).error_code == 0
        cluster.until(lambda: followers[0].partition().log.end_offset == 3)
        for node in (leader, followers[0]):
            assert node.partition().log.end_offset == 3
            part = cluster.fetch(node, 0)
            assert (part.high_watermark, values_of(part.records)) == (2, [b"1", b"2"])
            part = cluster.fetch(node, 2)
            assert (part.error_code, part.high_watermark, bytes(part.records)) == (0, 2, b"")


def test_short_requests_of_a_large_session_are_served_in_several_turns() -> None:
    with serving() as world:
        clients = [world.client() for _ in range(4)]
        named = [("none", index, 0) for index in range(900)]
        sessions = [
            client.ask(fetch_request(*named, session_epoch=0), 12).session_id for client in clients
        ]
        assert all(sessions)
        world.settle()
        sent = [
            client.send(fetch_request(session_id=session, session_epoch=1), 12)
            for client, session in zip(clients, sessions, strict=True)
        ]
        world.end_turn()
        answered = [client.has_answer(n) for client, n in zip(clients, sent, strict=True)]
        assert 0 < sum(answered) < len(clients)
        world.settle()
        for client, number in zip(clients, sent, strict=True):
            assert len(client.answer_to(number).responses[0].partitions) == len(named)
            assert client.channel.is_reading


# Many partitions, many who wait.

MANY = 20
FETCHING = "ottla.broker.handlers.fetch"


def looks_at(world: World, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The indexes of the partitions that fetches look at from here on."""
    looked_at: list[int] = []
    readable = world.broker.partitions.readable

    def noting(topic: str, topic_id: bytes, index: int) -> object:
        looked_at.append(index)
        return readable(topic, topic_id, index)

    monkeypatch.setattr(world.broker.partitions, "readable", noting)
    return looked_at


def test_a_waiting_fetch_looks_only_at_the_partition_that_grew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving() as world:
        world.topic("t", MANY)
        client = world.client()
        size = len(batch(b"x" * 100))
        named = [("t", index, 0) for index in range(MANY)]
        write(world, b"x" * 100, partition=5)
        asked = start_waiting(client, *named, min_bytes=4 * size)
        looked_at = looks_at(world, monkeypatch)
        write(world, b"x" * 100, partition=3)
        write(world, b"x" * 100, partition=3)
        assert looked_at == [3, 3]
        assert not client.has_answer(asked)
        write(world, b"x" * 100, partition=7)
        assert sorted(looked_at) == sorted([3, 3, 7, *range(MANY)])
        [topic] = client.answers()[asked].responses
        counts = {p.partition_index: len(values_of(p.records)) for p in topic.partitions}
        assert {index: n for index, n in counts.items() if n} == {3: 2, 5: 1, 7: 1}
        assert not any(world.partition("t", index).watching for index in range(MANY))


def test_a_fetch_behind_many_others_of_its_connection_does_not_wait() -> None:
    with serving() as world:
        world.topic()
        client = world.client()
        sent = [client.send(fetch_request(("t", 0, 0), max_wait_ms=10_000), 12) for _ in range(100)]
        world.settle()
        assert len(world.partition().watching) == WAITING_MAX
        assert not client.answers()
        write(world, b"news")
        world.settle()
        answers = client.answers()
        assert list(answers) == sent
        counts = [len(values_of(only(answers[number]).records)) for number in sent]
        assert counts == [1] * WAITING_MAX + [0] * (100 - WAITING_MAX)


def test_those_who_wait_for_one_record_are_answered_in_several_turns() -> None:
    with serving() as world:
        world.topic("t", MANY)
        named = [("t", index, 0) for index in range(MANY)]
        clients = [world.client() for _ in range(200)]
        sent = [start_waiting(client, *named) for client in clients]
        world.client().send(produce_request(batch(b"news")), 12)
        world.end_turn()
        answered = sum(client.has_answer(n) for client, n in zip(clients, sent, strict=True))
        assert 0 < answered < len(clients)
        world.settle()
        for client, number in zip(clients, sent, strict=True):
            first = client.answer_to(number).responses[0].partitions[0]
            assert values_of(first.records) == [b"news"]


def test_a_crowd_that_waits_for_one_partition_is_answered_in_several_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{FETCHING}.WANTED_US", TURN_US // 10)
    monkeypatch.setattr(f"{FETCHING}.CROWD", 10)
    with serving() as world:
        world.topic()
        clients = [world.client() for _ in range(40)]
        sent = [start_waiting(client, ("t", 0, 0)) for client in clients]
        world.client().send(produce_request(batch(b"news")), 12)
        world.end_turn()
        answered = sum(client.has_answer(n) for client, n in zip(clients, sent, strict=True))
        assert 0 < answered < len(clients)
        world.settle()
        for client, number in zip(clients, sent, strict=True):
            assert values_of(only(client.answer_to(number)).records) == [b"news"]


def test_a_small_fetch_that_has_no_turn_waits_on_for_its_min_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{FETCHING}.CROWD", 0)
    with serving() as world:
        world.topic("t", 2)
        client = world.client()
        size = len(batch(b"x"))
        asked = start_waiting(client, ("t", 0, 0), ("t", 1, 0), min_bytes=3 * size)
        budget = world.broker.scans.budget
        write(world, b"x", partition=1)
        for partition in (0, 0):
            assert not client.has_answer(asked)
            assert budget.take(budget.left_us)
            world.client().send(produce_request(batch(b"x"), partition=partition), 12)
            world.end_turn()
        world.settle()
        [topic] = client.answers()[asked].responses
        assert [len(values_of(part.records)) for part in topic.partitions] == [2, 1]


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{FETCHING}.FEW", 2)
    monkeypatch.setattr(f"{FETCHING}.SLICE", 3)
    monkeypatch.setattr(f"{FETCHING}.WANTED_US", TURN_US)
    monkeypatch.setattr("ottla.broker.fetch.response.STEP", 2)


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_takes_several_turns_is_the_same(version: int) -> None:
    with serving() as world:
        topic_id = world.topic("t", MANY)
        for index in range(MANY):
            write(world, b"%d" % index, partition=index)
        topic = topic_id if version >= BY_ID_SINCE else "t"
        named = [(topic, index, 0) for index in range(MANY)]
        answer = world.client().ask(fetch_request(*named), version)
        [told] = answer.responses
        assert [values_of(part.records) for part in told.partitions] == [
            [b"%d" % index] for index in range(MANY)
        ]


@pytest.mark.usefixtures("small_slices")
def test_a_fetch_of_many_partitions_waits_until_one_grows_or_time_is_over() -> None:
    with serving() as world:
        world.topic("t", MANY)
        client = world.client()
        named = [("t", index, 0) for index in range(MANY)]
        asked = start_waiting(client, *named)
        write(world, b"news", partition=17)
        world.settle()
        [told] = client.answers()[asked].responses
        assert values_of(told.partitions[17].records) == [b"news"]
        asked = start_waiting(client, ("t", 17, 1), *named[:10], max_wait_ms=300)
        assert client.channel.is_reading
        world.pass_ms(310)
        assert client.has_answer(asked)
        assert not any(world.partition("t", index).watching for index in range(MANY))


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("index", [0, MANY - 1])
@pytest.mark.parametrize("turns", range(0, 40, 3))
def test_what_comes_while_many_partitions_are_looked_at_is_not_missed(
    index: int, turns: int
) -> None:
    with serving() as world:
        world.topic("t", MANY)
        client = world.client()
        named = [("t", index, 0) for index in range(MANY)]
        asked = client.send(fetch_request(*named, max_wait_ms=10_000), 12)
        for _ in range(turns):
            world.run(asyncio.sleep(0))
        write(world, b"news", partition=index)
        world.settle()
        [told] = client.answers()[asked].responses
        assert values_of(told.partitions[index].records) == [b"news"]
        assert not any(world.partition("t", index).watching for index in range(MANY))


@pytest.mark.usefixtures("small_slices")
@pytest.mark.parametrize("turns", range(0, 40, 3))
def test_nothing_is_left_of_a_client_that_goes_while_its_partitions_are_looked_at(
    turns: int,
) -> None:
    with serving() as world:
        world.topic("t", MANY)
        client = world.client()
        client.send(fetch_request(*[("t", i, 0) for i in range(MANY)], max_wait_ms=10_000), 12)
        for _ in range(turns):
            world.run(asyncio.sleep(0))
        client.close()
        world.settle()
        assert not any(world.partition("t", index).watching for index in range(MANY))
