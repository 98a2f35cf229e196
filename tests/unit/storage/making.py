"""What tests of storage make again and again: batches, logs, disks."""

from random import Random
from struct import pack

from ottla.model.types import TopicPartition, WallTime
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from ottla.records.scan import ScanBudget
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage import existing_log
from ottla.storage.cleanable import cleanable
from ottla.storage.compaction import Cleaning, CleaningLimits
from ottla.storage.config import LogConfig
from ottla.storage.deletion import remove_paths
from ottla.storage.index import TimestampedOffset
from ottla.storage.log import Log
from ottla.storage.lookup import MaxTimestampSearch, TimestampSearch
from ottla.storage.retention import delete_old_segments

NOW = WallTime(1_700_000_000_000)
DIRECTORY = "/data/t-0"
NAME = TopicPartition("t", 0)
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=200, file_delete_delay_ms=10)
LOOKUP_BYTES_MAX = 1 << 20


def make_disk(seed: int = 1) -> SimulatedDisk:
    disk = SimulatedDisk(Random(seed))
    disk.make_directory(DIRECTORY)
    disk.sync_directory("/")
    disk.sync_directory("/data")
    return disk


def make_batch(
    count: int = 1,
    *,
    size: int = 100,
    timestamp: int = NOW,
    producer_id: int = -1,
    epoch: int = 0,
    sequence: int = 0,
    base_offset: int = 0,
    leader_epoch: int = -1,
    is_transactional: bool = False,
    key: bytes | None = None,
) -> Batch:
    """`count` records whose timestamps grow by one; `size` is that of each value."""
    records = [Record(base_offset + i, timestamp + i, key, b"v" * size) for i in range(count)]
    has_producer = producer_id >= 0
    return Batch(
        build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=epoch if has_producer else -1,
            base_sequence=sequence if has_producer else -1,
            leader_epoch=leader_epoch,
            is_transactional=is_transactional,
        )
    )


def make_marker(
    producer_id: int, *, is_abort: bool, epoch: int = 0, coordinator_epoch: int = 0
) -> Batch:
    """The end of a transaction, as a coordinator has it written."""
    record = Record(0, NOW, pack(">hh", 0, 0 if is_abort else 1), pack(">hi", 0, coordinator_epoch))
    return Batch(
        build_batch(
            [record],
            producer_id=producer_id,
            producer_epoch=epoch,
            is_transactional=True,
            is_control=True,
        )
    )


def open_log(
    disk: SimulatedDisk,
    config: LogConfig = SMALL,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    power_lost: bool = False,
    now: int = NOW,
) -> Log:
    return existing_log.open_log(
        disk,
        DIRECTORY,
        NAME,
        config,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        power_lost=power_lost,
        now=WallTime(now),
    )


def put(log: Log, *batches: Batch, leader_epoch: int = 0, now: int = NOW) -> list[int]:
    """Stage the batches and flush them in one go; their base offsets."""
    offsets = [log.stage(batch, leader_epoch) for batch in batches]
    log.flush(WallTime(now))
    return offsets


def fill(log: Log, count: int, *, size: int = 100) -> None:
    """`count` batches of one record each, one flush for each."""
    for _ in range(count):
        put(log, make_batch(size=size))


def retain(log: Log, now: int, high_watermark: int) -> int:
    """Delete what retention allows, as a broker does it; how many segments went."""
    before = len(log.segments)
    end = log.segments[-1].base_offset
    for step in delete_old_segments(log, WallTime(now), high_watermark):
        step.sync()
    return before - len(log.segments) + (log.segments[-1].base_offset != end)


def remove_deleted(log: Log, now: int) -> None:
    remove_paths(log.disk, log.files.deletion.take_due(WallTime(now)))


def read_all(log: Log, *, start: int | None = None, bytes_max: int = 500) -> list[Batch]:
    """Every batch from `start` on, in order, as a consumer would fetch them."""
    offset = log.log_start_offset if start is None else start
    found: list[Batch] = []
    while offset < log.end_offset:
        piece = log.read(offset, bytes_max, end_offset=log.end_offset)
        assert piece is not None, f"nothing at {offset}"
        data = piece.read()
        position = 0
        while position + 61 <= len(data):
            try:
                batch = Batch.parse(data, position)
            except ValueError:
                break
            assert batch.is_valid
            found.append(batch)
            position += batch.size
            offset = batch.next_offset
        assert position, "the first batch is always whole"
    return found


def clean_log(
    log: Log,
    *,
    cleaned_to: int | None = None,
    stable: int | None = None,
    now: int = NOW,
    limits: CleaningLimits = CleaningLimits(),  # noqa: B008 - it is frozen.
) -> int:
    """One round of compaction, as a broker does it; where the next round begins."""
    log.sync()
    last_stable_offset = log.end_offset if stable is None else stable
    part = cleanable(log, cleaned_to, last_stable_offset, WallTime(now))
    cleaning = Cleaning(log, part, WallTime(now), limits)
    for _ in cleaning.gather():
        pass
    for group in cleaning.groups():
        cleaned = cleaning.begin(group)
        for _ in cleaning.copy(group, cleaned):
            pass
        assert log.replace_segments(group, cleaned, WallTime(now))
    return cleaning.map.end_offset


def finish_search(search: TimestampSearch | MaxTimestampSearch) -> TimestampedOffset | None:
    for scan in search.steps():
        if scan is not None:
            assert scan.run_within(ScanBudget(10**9))
    return search.found


def find_by_timestamp(log: Log, timestamp: int) -> TimestampedOffset | None:
    return finish_search(TimestampSearch(log, timestamp, LOOKUP_BYTES_MAX))


def max_timestamp(log: Log) -> TimestampedOffset | None:
    return finish_search(MaxTimestampSearch(log, LOOKUP_BYTES_MAX))
