"""A compaction is crashed at every single file operation, and the log recovered each time.

Old segments or new ones, never both: whatever is there, every key that was synced has its last
value, no record has changed or moved, none comes twice, and producers go on where they were.
"""

import copy
from dataclasses import dataclass, replace
from random import Random

import pytest

from ottla.model.types import TopicPartition, WallTime
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch, read_records
from ottla.simulation.world.disk import Crashed, SimulatedDisk
from ottla.storage.cleanable import cleanable
from ottla.storage.compaction import Cleaning, CleaningLimits
from ottla.storage.directory import LogDirectory
from ottla.storage.directory_loader import load_logs
from ottla.storage.log import Log
from ottla.storage.segment import Segment
from ottla.storage.transaction_index import AbortedTransaction
from tests.crash.world import CONFIG, META, PATH, START
from tests.unit.storage.making import (
    clean_log,
    make_batch,
    make_marker,
    read_all,
    remove_deleted,
)

NAME = TopicPartition("t", 0)
COMPACTED = replace(
    CONFIG,
    segment_bytes=700,
    retention_bytes=-1,
    delete_retention_ms=50,
    is_compacted=True,
    is_deleted=False,
)
BATCHES = 18
KEYS = 3


class World:
    def __init__(self, seed: int) -> None:
        self.disk = SimulatedDisk(Random(seed))
        self.now = START
        self.written: list[Record] = []
        self.durable_end = 0
        self.cleaned_to: int | None = None
        self.aborted: list[AbortedTransaction] = []

    def open(self) -> LogDirectory:
        directory = LogDirectory.open(self.disk, PATH)
        if directory.meta is None:
            directory.format(META)
        load_logs(directory, lambda _: COMPACTED, WallTime(self.now))
        assert not directory.damaged, directory.damaged
        return directory

    def append(self, log: Log, first: int, count: int) -> None:
        for number in range(first, first + count):
            key = b"key%d" % (number % KEYS)
            value = None if number % 7 == 0 else b"%d " % number * 30
            record = Record(0, self.now, key, value)
            data = build_batch(
                [record], codec=number % 5, producer_id=1, producer_epoch=0, base_sequence=number
            )
            offset = log.stage(Batch(data), 0)
            log.flush(WallTime(self.now))
            self.written.append(record._replace(offset=offset))
            self.now += 1

    def abort(self, log: Log) -> None:
        """Records of an aborted transaction, which no reader who waits for commits may see."""
        log.stage(make_batch(producer_id=2, is_transactional=True, key=b"key0"), 0)
        log.stage(make_marker(2, is_abort=True), 0, is_client=False)
        log.flush(WallTime(self.now))

    def clean(self, directory: LogDirectory, log: Log) -> None:
        """As a broker does it: nothing is cleaned that a recovery would scan again."""
        log.sync()
        self.durable_end = log.end_offset
        directory.checkpoint({NAME: log.end_offset})
        self.now += 60
        self.cleaned_to = clean_log(log, cleaned_to=self.cleaned_to, now=self.now)
        remove_deleted(log, self.now + 20)

    def run(self) -> None:
        directory = self.open()
        log = directory.create_log(NAME, bytes(16), COMPACTED, WallTime(self.now))
        self.append(log, 0, 1)
        log.sync()
        self.append(log, 1, BATCHES // 2 - 1)
        self.abort(log)
        self.append(log, BATCHES // 2, BATCHES // 2)
        log.roll(WallTime(self.now))
        self.clean(directory, log)
        self.clean(directory, log)
        self.append(log, BATCHES, 2)

    def check(self) -> Log | None:
        log = self.open().logs.get(NAME)
        if log is None:
            assert not self.durable_end
            return None
        assert log.end_offset >= self.durable_end
        found = [
            record
            for batch in read_all(log)
            if not batch.is_transactional
            for record in read_records(batch, 10**6)
        ]
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets)), "each record comes once, in order"
        written = [record for record in self.written if record.offset < log.end_offset]
        by_offset = {record.offset: record for record in written}
        for record in found:
            if record.offset in by_offset:
                assert by_offset[record.offset] == record
        model = {record.key: record.value for record in written}
        seen = {record.key: record.value for record in found}
        assert {key: seen.get(key) for key in model} == model
        self.check_transactions(log)
        if written:
            last = max(int(record.offset) for record in written)
            assert log.producers.by_id[1].batches[-1].last_offset >= last
        return log

    def check_transactions(self, log: Log) -> None:
        """Whoever meets aborted records is told so, and nobody is told of those long gone."""
        markers = {batch.base_offset for batch in read_all(log) if batch.is_control}
        known = {each.last_offset for each in log.aborted_transactions(0, log.end_offset)}
        for batch in read_all(log):
            if batch.is_transactional and batch.count and not batch.is_control:
                complete = any(marker > batch.base_offset for marker in markers)
                assert bool(known) == complete
        assert known <= markers, "an abort whose marker is gone would hide what follows it"


def operations_of_workload() -> int:
    world = World(0)
    world.run()
    return world.disk.operations


OPERATIONS = operations_of_workload()


def crash(world: World, operation: int, *, power: bool) -> None:
    world.disk.crash_at = operation
    with pytest.raises(Crashed):
        world.run()
    if power:
        world.disk.cut_power()
    else:
        world.disk.kill()


def go_on(world: World) -> None:
    """What was recovered is cleaned again, and crashed once more without loss."""
    log = world.check()
    if log is not None:
        log.roll(WallTime(world.now))
        log.sync()
        world.durable_end = log.end_offset
        world.now += 60
        stable = log.last_stable_offset(log.end_offset)  # The crash may have left one open.
        clean_log(log, stable=stable, now=world.now)
    world.disk.kill()
    world.check()


def test_the_workload_cleans_and_merges() -> None:
    world = World(0)
    world.run()
    assert OPERATIONS > 200
    names = world.disk.list(f"{PATH}/{NAME}")
    assert len([name for name in names if name.endswith(".log")]) <= 3


@pytest.mark.parametrize("part", range(8))
def test_a_kill_at_any_operation_leaves_old_or_new(part: int) -> None:
    for operation in range(1 + part, OPERATIONS + 1, 8):
        world = World(operation)
        crash(world, operation, power=False)
        go_on(world)


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("seed", range(2))
def test_a_power_cut_at_any_operation_leaves_old_or_new(part: int, seed: int) -> None:
    for operation in range(1 + part, OPERATIONS + 1, 8):
        world = World(operation * 1000 + seed)
        crash(world, operation, power=True)
        go_on(world)


@pytest.mark.parametrize("part", range(8))
def test_a_crash_while_finishing_a_swap_is_recovered_from(part: int) -> None:
    for operation in range(1 + part, OPERATIONS + 1, 8):
        world = World(operation * 7919)
        crash(world, operation, power=operation % 2 == 0)
        for _ in range(3):
            world.disk.crash_at = world.disk.operations + world.disk.random.randint(1, 15)
            try:
                world.open()
                break
            except Crashed:
                if world.disk.random.random() < 0.7:
                    world.disk.cut_power()
                else:
                    world.disk.kill()
        world.disk.kill()
        go_on(world)


@dataclass
class Prepared:
    """A round whose only group, with an aborted transaction in it, is about to be swapped in."""

    world: World
    log: Log
    group: list[Segment]
    cleaned: Segment


def prepared() -> Prepared:
    world = World(0)
    directory = world.open()
    log = directory.create_log(NAME, bytes(16), COMPACTED, WallTime(world.now))
    for first in (0, 2, 4):
        world.append(log, first, 2)
        if first == 2:
            world.abort(log)
        log.roll(WallTime(world.now))
    log.sync()
    world.durable_end = log.end_offset
    directory.checkpoint({NAME: log.end_offset})
    log.config = replace(COMPACTED, segment_bytes=10**6)
    part = cleanable(log, None, log.end_offset, WallTime(world.now))
    cleaning = Cleaning(log, part, WallTime(world.now), CleaningLimits())
    list(cleaning.gather())
    (group,) = cleaning.groups()
    assert len(group) == 3
    cleaned = cleaning.begin(group)
    list(cleaning.copy(group, cleaned))
    return Prepared(world, log, group, cleaned)


PREPARED = prepared()


def swap_until(operation: int, seed: int) -> tuple[World, bool]:
    """Crash at an operation of the swap, counted from 1; False if it was over before that."""
    begun = copy.deepcopy(PREPARED)
    disk = begun.world.disk
    disk.random = Random(seed)
    disk.crash_at = disk.operations + operation
    try:
        assert begun.log.replace_segments(begun.group, begun.cleaned, WallTime(begun.world.now))
    except Crashed:
        disk.cut_power()
        return begun.world, True
    return begun.world, False


@pytest.mark.parametrize("seed", range(40))
def test_power_cuts_during_a_swap_and_while_it_is_finished_never_mix_old_and_new(seed: int) -> None:
    operation = 1
    while True:
        world, is_cut = swap_until(operation, seed * 1009 + operation)
        if not is_cut:
            break
        for _ in range(2):
            disk = world.disk
            disk.crash_at = disk.operations + disk.random.randint(1, 12)
            try:
                world.open()
            except Crashed:
                disk.cut_power()
            else:
                disk.cut_power()
                break
        log = world.check()
        assert log is not None
        assert len(log.segments) in (2, 4), "all three, or the one made from them"
        aborted = log.aborted_transactions(0, log.end_offset)
        assert len(aborted) == 1, "its marker is still there"
        operation += 1
    assert operation > 20
