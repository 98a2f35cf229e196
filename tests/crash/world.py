"""A workload over one log directory that can be cut off anywhere, and a memory of what it did.

The memory knows, for each partition, what was written, what was flushed and what was synced; after
a crash it says whether the state that was recovered can be explained.
"""

from dataclasses import dataclass, field
from random import Random

import pytest

from ottla.model.types import TopicPartition, WallTime
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch, read_records
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.config import LogConfig
from ottla.storage.deletion import remove_paths
from ottla.storage.directory import LogDirectory
from ottla.storage.directory_loader import load_logs
from ottla.storage.identity import MetaProperties
from ottla.storage.log import Log
from ottla.storage.producer_state import Duplicate
from tests.unit.storage.making import remove_deleted, retain

PATH = "/data"
META = MetaProperties("cluster", 1, bytes(16))
CONFIG = LogConfig(
    segment_bytes=1500,
    index_interval_bytes=200,
    retention_bytes=4000,
    file_delete_delay_ms=10,
)
START = 1_700_000_000_000


@dataclass
class Remembered:
    """One life of one partition. A value is a batch's number, unique over all lives."""

    values: list[tuple[int, int]] = field(default_factory=list)  # Base offset and value.
    staged_end: int = 0
    flushed_end: int = 0
    synced_end: int = 0
    start: int = 0
    start_max: int = 0  # A deletion under way may have come this far.
    may_exist: bool = True
    must_exist: bool = False


class World:
    def __init__(self, seed: int) -> None:
        self.disk = SimulatedDisk(Random(seed))
        self.now = START
        self.lives: dict[TopicPartition, Remembered] = {}
        self.gone: set[int] = set()  # Values of partitions that were deleted for good.
        self._next_value = 0
        self._next_sequence: dict[tuple[TopicPartition, int], int] = {}
        self.directory: LogDirectory | None = None

    def open(self) -> LogDirectory:
        directory = LogDirectory.open(self.disk, PATH)
        if directory.meta is None:
            directory.format(META)
        load_logs(directory, lambda _: CONFIG, WallTime(self.now))
        assert not directory.damaged, directory.damaged
        self.directory = directory
        return directory

    def create(self, name: TopicPartition) -> Log:
        assert self.directory is not None
        self.lives[name] = Remembered()
        return self.directory.create_log(name, bytes(16), CONFIG, WallTime(self.now))

    def append(self, log: Log, count: int) -> None:
        """Stage `count` batches of two producers, and flush them in one go."""
        life = self.lives[log.topic_partition]
        for _ in range(count):
            value = self._next_value
            self._next_value += 1
            producer_id = value % 2
            key = (log.topic_partition, producer_id)
            sequence = self._next_sequence.get(key, 0)
            batch = self.batch(value, producer_id, sequence)
            offset = log.stage(batch, epoch_of(value))
            life.values.append((offset, value))
            life.staged_end = log.staged_end
            self._next_sequence[key] = sequence + 2
        try:
            log.flush(WallTime(self.now))
        except OSError:
            life.values = [entry for entry in life.values if entry[0] < life.flushed_end]
            life.staged_end = life.flushed_end
            raise
        life.flushed_end = log.end_offset
        self.now += 1

    def batch(self, value: int, producer_id: int, sequence: int) -> Batch:
        text = b"%d" % value
        records = [Record(0, self.now, b"k", text), Record(1, self.now, None, text * 40)]
        return Batch(
            build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        )

    def sync(self, log: Log) -> None:
        log.sync()
        life = self.lives[log.topic_partition]
        life.synced_end = life.flushed_end
        life.must_exist = True

    def retain(self, log: Log) -> None:
        life = self.lives[log.topic_partition]
        life.start_max = log.end_offset
        retain(log, self.now, log.end_offset)
        life.start = life.start_max = log.log_start_offset
        self.now += 20
        remove_deleted(log, self.now)

    def delete(self, name: TopicPartition) -> None:
        assert self.directory is not None
        life = self.lives[name]
        life.must_exist = False
        self.directory.delete_log(name, bytes(16), WallTime(self.now), 0)
        self.directory.checkpoint(self.directory.checkpoints.high_watermarks)
        life.may_exist = False
        self.gone |= {value for _, value in life.values}
        for producer_id in (0, 1):
            self._next_sequence.pop((name, producer_id), None)

    def run(self) -> None:
        """Everything a log does in its life, some of it twice."""
        first, second = TopicPartition("t", 0), TopicPartition("u", 1)
        directory = self.open()
        log = self.create(first)
        other = self.create(second)
        self.append(log, 1)
        self.append(log, 3)
        self.append(other, 2)
        self.sync(log)
        directory.checkpoint({first: log.end_offset})
        for count in (2, 1, 4, 1):
            self.append(log, count)
        self.sync(log)
        self.append(log, 12)
        directory.checkpoint({first: log.end_offset})
        self.retain(log)
        self.append(other, 2)
        self.sync(other)
        directory.checkpoint({first: log.end_offset, second: other.end_offset})
        self.delete(second)
        remove_paths(self.disk, directory.take_deleted(WallTime(self.now)))
        self.append(log, 2)
        other = self.create(second)
        self.append(other, 1)
        directory.close(7, {first: log.end_offset})
        for life in self.lives.values():
            life.synced_end, life.must_exist = life.flushed_end, True
        directory = self.open()
        assert directory.marks.was_clean
        log = directory.logs[first]
        self.append(log, 3)
        self.retain(log)
        self.append(log, 3)

    def check(self, *, power_lost: bool) -> None:
        """Recover, and hold what is there against what was done."""
        directory = self.open()
        for name, life in self.lives.items():
            log = directory.logs.get(name)
            if log is None:
                assert not life.must_exist, f"{name} is gone"
                if life.may_exist:
                    self.lives[name] = Remembered()
                    self._forget_sequences(name, self.lives[name])
                continue
            assert life.may_exist, f"{name} came back"
            self._check_log(log, life, power_lost=power_lost)
        assert set(directory.logs) <= set(self.lives)

    def _check_log(self, log: Log, life: Remembered, *, power_lost: bool) -> None:
        least = life.synced_end if power_lost else life.flushed_end
        assert least <= log.end_offset <= life.staged_end, (least, log.end_offset, life)
        assert life.start <= log.log_start_offset or power_lost
        assert log.log_start_offset <= max(life.start_max, life.start)
        expected = [
            entry for entry in life.values if log.log_start_offset <= entry[0] < log.end_offset
        ]
        assert read_values(log) == expected
        life.values = [entry for entry in life.values if entry[0] < log.end_offset]
        life.staged_end = life.flushed_end = log.end_offset
        life.start = life.start_max = log.log_start_offset
        for offset, value in expected:
            assert log.epochs.epoch_of(offset) == epoch_of(value)
        self._forget_sequences(log.topic_partition, life)
        self._check_producers(log, life)

    def _forget_sequences(self, name: TopicPartition, life: Remembered) -> None:
        """The producers go on after what the log kept."""
        for producer_id in (0, 1):
            kept = [value for _, value in life.values if value % 2 == producer_id]
            self._next_sequence[(name, producer_id)] = 2 * len(kept)

    def _check_producers(self, log: Log, life: Remembered) -> None:
        visible = [entry for entry in life.values if entry[0] >= log.log_start_offset]
        for producer_id in (0, 1):
            mine = [entry for entry in visible if entry[1] % 2 == producer_id]
            if not mine:
                continue
            next_sequence = self._next_sequence[(log.topic_partition, producer_id)]
            producer = log.producers.by_id[producer_id]
            assert producer.last_sequence == next_sequence - 1, (producer, next_sequence)
            with pytest.raises(Duplicate) as duplicate:
                log.stage(self.batch(mine[-1][1], producer_id, next_sequence - 2), 10**6)
            assert duplicate.value.base_offset == mine[-1][0]


def epoch_of(value: int) -> int:
    """Leaders change every few batches."""
    return value // 5


def read_values(log: Log) -> list[tuple[int, int]]:
    """Base offset and value of every batch that a reader gets, each of them checked."""
    found: list[tuple[int, int]] = []
    offset = log.log_start_offset
    while offset < log.end_offset:
        piece = log.read(offset, 700, end_offset=log.end_offset)
        assert piece is not None, f"nothing at {offset}"
        data = piece.read()
        position = 0
        while position + 61 <= len(data):
            try:
                batch = Batch.parse(data, position)
            except ValueError:
                break
            assert batch.is_valid
            assert batch.base_offset == offset, (batch, offset)
            first, second = read_records(batch, 10_000)
            assert first.value is not None
            assert second.value == first.value * 40
            found.append((offset, int(first.value)))
            offset = batch.next_offset
            position += batch.size
        assert position, "at least one whole batch"
    return found
