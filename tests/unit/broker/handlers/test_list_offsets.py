"""ListOffsets: both ends of a log, offsets by time, and who may ask for what in which version."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import delete_records
from ottla.protocol.messages import list_offsets as wire
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from ottla.simulation.world.clock import WALL_START_MS
from tests.unit.broker.requests import batch, only, produce_request
from tests.unit.broker.serving import World, serving

VERSIONS = range(1, 12)
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING = -1, -2, -3, -4, -5, -6


def asking(timestamp: int, topic: str = "t", partition: int = 0, epoch: int = -1) -> wire.Request:
    part = wire.ListOffsetsPartition(
        partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
    )
    return wire.Request(replica_id=-1, topics=[wire.ListOffsetsTopic(topic, [part])])


def found(world: World, timestamp: int, version: int = 9, **options: int) -> tuple[int, int]:
    part = only(world.client().ask(asking(timestamp, **options), version))
    assert part.error_code == 0
    return part.offset, part.timestamp


def code(world: World, request: wire.Request, version: int = 9) -> int:
    part = only(world.client().ask(request, version))
    assert (part.offset, part.timestamp) == (-1, -1)
    return part.error_code


def write_at(world: World, *times: int) -> None:
    for at in times:
        client = world.client()
        part = only(client.ask(produce_request(batch(b"x", b"y", at=WALL_START_MS + at)), 12))
        assert part.error_code == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_both_ends_are_found_in_every_version(version: int) -> None:
    with serving() as world:
        world.topic()
        assert found(world, LATEST, version) == (0, -1)
        assert found(world, EARLIEST, version) == (0, -1)
        write_at(world, 1, 2)
        assert found(world, LATEST, version) == (4, -1)
        assert found(world, EARLIEST, version) == (0, -1)


def test_an_offset_is_found_by_time() -> None:
    with serving() as world:
        world.topic()
        write_at(world, 100, 200, 300)
        for wanted, offset, at in ((0, 0, 100), (100, 0, 100), (101, 2, 200), (300, 4, 300)):
            assert found(world, WALL_START_MS + wanted) == (offset, WALL_START_MS + at)
        assert found(world, 0) == (0, WALL_START_MS + 100)
        assert found(world, WALL_START_MS + 301) == (-1, -1)


def test_the_greatest_timestamp_is_found_wherever_it_is() -> None:
    with serving() as world:
        world.topic()
        assert found(world, MAX_TIMESTAMP) == (-1, -1)
        write_at(world, 100, 900, 300)
        assert found(world, MAX_TIMESTAMP) == (2, WALL_START_MS + 900)


def test_deleted_records_are_not_found() -> None:
    with serving() as world:
        world.topic()
        write_at(world, 100, 200)
        part = delete_records.DeleteRecordsPartition(0, 2)
        topic = delete_records.DeleteRecordsTopic("t", [part])
        world.client().ask(delete_records.Request([topic]))
        assert found(world, EARLIEST) == (2, -1)
        assert found(world, 0) == (2, WALL_START_MS + 200)


def test_what_is_tiered_is_nowhere_and_what_is_local_is_everything() -> None:
    with serving() as world:
        world.topic()
        write_at(world, 100)
        assert found(world, EARLIEST_LOCAL) == (0, -1)
        assert found(world, LATEST_TIERED) == (-1, -1)
        assert found(world, PENDING, 11) == (-1, -1)


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING, 11)],
)
def test_special_times_have_their_versions(timestamp: int, since: int) -> None:
    with serving() as world:
        world.topic()
        assert code(world, asking(timestamp), since - 1) == ErrorCode.UNSUPPORTED_VERSION
        assert only(world.client().ask(asking(timestamp), since)).error_code == 0
        assert code(world, asking(-7), 11) == ErrorCode.UNSUPPORTED_VERSION


def test_epochs_are_told_and_compared() -> None:
    with serving() as world:
        world.topic()
        write_at(world, 100)
        world.restart()
        write_at(world, 200)
        epoch = world.partition().leader_epoch
        client = world.client()
        assert only(client.ask(asking(LATEST), 4)).leader_epoch == epoch
        assert only(client.ask(asking(EARLIEST), 4)).leader_epoch == 0
        assert only(client.ask(asking(WALL_START_MS + 150), 4)).leader_epoch == epoch
        assert code(world, asking(LATEST, epoch=epoch - 1), 4) == ErrorCode.FENCED_LEADER_EPOCH
        assert code(world, asking(LATEST, epoch=epoch + 1), 4) == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_what_is_unknown_or_asked_twice_is_refused() -> None:
    with serving() as world:
        world.topic()
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert code(world, asking(LATEST, topic="nobody")) == unknown
        assert code(world, asking(LATEST, topic="")) == unknown
        assert code(world, asking(LATEST, partition=1)) == unknown
        twice = asking(LATEST)
        twice.topics[0].partitions *= 2
        for part in world.client().ask(twice, 9).topics[0].partitions:
            assert part.error_code == ErrorCode.INVALID_REQUEST


def test_only_what_is_committed_counts() -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic()
        write_at(world, 100)
        world.workers.is_holding = True
        world.client().send(produce_request(batch(b"z", at=WALL_START_MS + 500)), 12)
        world.settle()
        assert found(world, LATEST) == (2, -1)
        assert found(world, WALL_START_MS + 400) == (-1, -1)
        for isolation_level in (0, 1):
            request = asking(LATEST)
            request.isolation_level = isolation_level
            assert only(world.client().ask(request, 9)).offset == 2
        world.workers.is_holding = False
        world.pass_ms(10)
        assert found(world, LATEST) == (3, -1)


def test_a_disk_that_cannot_be_read_is_told() -> None:
    with serving(directories=["/data-0", "/data-1"]) as world:
        world.topic("t", 2)
        lost = next(i for i in (0, 1) if world.partition("t", i).log.directory[:7] == "/data-1")
        part = produce_request(batch(b"a", b"b", at=WALL_START_MS), "t", lost)
        world.client().ask(part, 12)
        world.restart()
        world.disk.fail("read", path_contains="/data-1")
        request = asking(WALL_START_MS, partition=lost)
        assert code(world, request) == ErrorCode.KAFKA_STORAGE_ERROR
        assert code(world, request) == ErrorCode.KAFKA_STORAGE_ERROR
        assert found(world, LATEST, partition=1 - lost) == (0, -1)


def write_many(world: World, count: int, codec: int = 4) -> None:
    """A batch in which only the last record is a second later."""
    times = [WALL_START_MS] * (count - 1) + [WALL_START_MS + 1000]
    records = [Record(i, at, None, b"") for i, at in enumerate(times)]
    request = produce_request(build_batch(records, codec=codec))
    assert only(world.client().ask(request, 12)).error_code == 0


@pytest.mark.parametrize("codec", range(5))
@pytest.mark.parametrize("timestamp", [MAX_TIMESTAMP, WALL_START_MS + 1])
def test_a_worker_searches_a_batch_of_many_records(codec: int, timestamp: int) -> None:
    with serving() as world:
        world.topic()
        write_many(world, 3000, codec)
        world.workers.is_holding = True
        client = world.client()
        asked = client.send(asking(timestamp), 9)
        world.settle()
        assert world.workers.waiting == 1
        assert found(world, LATEST) == (3000, -1)
        world.workers.is_holding = False
        part = only(client.answer_to(asked))
        assert (part.offset, part.timestamp) == (2999, WALL_START_MS + 1000)


def test_a_topic_may_be_deleted_while_a_worker_searches() -> None:
    with serving() as world:
        world.topic()
        write_many(world, 3000)
        world.workers.is_holding = True
        client = world.client()
        asked = client.send(asking(WALL_START_MS + 1), 9)
        world.settle()
        world.broker.partitions._remove(world.broker.image.topics_by_name["t"], 0)
        world.workers.is_holding = False
        code = only(client.answer_to(asked)).error_code
        assert code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert not world.broker.directories.is_any_full


def test_unreadable_records_of_a_client_do_not_take_the_partition_offline() -> None:
    with serving() as world:
        world.topic()
        data = batch(b"value")
        data[61] = 0x7F  # The length of the record.
        Batch(data).seal()
        assert only(world.client().ask(produce_request(data), 12)).error_code == 0
        assert found(world, WALL_START_MS) == (0, WALL_START_MS)
        assert found(world, MAX_TIMESTAMP) == (0, WALL_START_MS)
        write_at(world, 5)
        assert found(world, WALL_START_MS + 5) == (1, WALL_START_MS + 5)


def test_a_search_ends_with_the_leader_epoch_in_which_it_began() -> None:
    """The log may have been cut meanwhile, though the same broker leads again."""
    with serving() as world:
        world.topic()
        write_many(world, 3000)
        world.workers.is_holding = True
        client = world.client()
        asked = client.send(asking(WALL_START_MS + 1), 9)
        world.settle()
        world.partition().lead(world.partition().leader_epoch + 1)
        world.workers.is_holding = False
        part = only(client.answer_to(asked))
        assert (part.error_code, part.offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
