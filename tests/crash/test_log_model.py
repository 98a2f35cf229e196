"""A log beside a model of it, a list of batches: random work, restarts and crashes between.

After every step, whatever a reader asks for has to be what the list says.
"""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ottla.model.types import TopicPartition, WallTime
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.config import LogConfig
from ottla.storage.existing_log import open_log
from tests.unit.storage.making import find_by_timestamp, remove_deleted, retain

DIRECTORY = "/data/t-0"
START = 1_700_000_000_000
CONFIG = LogConfig(
    segment_bytes=1200, index_interval_bytes=150, retention_bytes=2500, file_delete_delay_ms=5
)


class LogMachine(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.disk = SimulatedDisk(Random(seed))
        self.disk.make_directory(DIRECTORY)
        self.disk.sync_directory("/data")
        self.disk.sync_directory("/")
        self.now = START
        self.batches: list[tuple[int, int, int, int]] = []  # Offset, end, latest time, epoch.
        self.end = self.start = self.synced = self.epoch = 0
        self.open(clean=False, power_lost=False)

    def open(self, *, clean: bool, power_lost: bool) -> None:
        self.log = open_log(
            self.disk,
            DIRECTORY,
            TopicPartition("t", 0),
            CONFIG,
            recovery_point=self.synced,
            log_start_offset=self.start,
            clean=clean,
            now=WallTime(self.now),
            power_lost=power_lost,
        )

    @rule(
        counts=st.lists(st.integers(1, 5), min_size=1, max_size=6),
        size=st.integers(0, 200),
        step=st.integers(-50, 100),
        codec=st.integers(0, 4),
    )
    def append(self, counts: list[int], size: int, step: int, codec: int) -> None:
        self.now += 1
        end = self.end
        for count in counts:
            timestamps = [self.now + step * i for i in range(count)]
            records = [Record(i, t, None, b"x" * size) for i, t in enumerate(timestamps)]
            offset = self.log.stage(Batch(build_batch(records, codec=codec)), self.epoch)
            assert offset == end
            end += count
            self.batches.append((offset, end, max(timestamps), self.epoch))
        assert self.log.end_offset == self.end
        self.log.flush(WallTime(self.now))
        self.end = end

    @rule()
    def sync(self) -> None:
        self.log.sync()
        self.synced = self.end

    @rule()
    def change_leader(self) -> None:
        self.epoch += 1

    @rule()
    def retain(self) -> None:
        retain(self.log, self.now, self.end)
        size = self.log.size_bytes
        assert size - self.log.segments[0].size < CONFIG.retention_bytes
        assert self.log.log_start_offset >= self.start
        self.start = self.log.log_start_offset
        self.now += 3
        remove_deleted(self.log, self.now)

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        self.log.advance_log_start(offset)
        self.start = offset

    @precondition(lambda self: self.end > self.start)
    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Replication truncates where a batch begins."""
        offsets = [offset for offset, *_ in self.batches if offset >= self.start]
        offset = data.draw(st.sampled_from([*offsets, self.end]))
        self.synced = min(self.synced, offset)
        self.log.truncate_to(offset)
        self.cut(offset)

    @rule(ahead=st.integers(0, 50))
    def start_anew(self, ahead: int) -> None:
        self.synced = 0
        self.log.start_at(self.end + ahead)
        self.batches, self.start, self.end = [], self.end + ahead, self.end + ahead

    @rule()
    def restart(self) -> None:
        self.log.close()
        self.synced = self.end
        self.open(clean=True, power_lost=False)

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        self.open(clean=False, power_lost=False)

    @rule()
    def cut_power(self) -> None:
        self.disk.cut_power()
        self.open(clean=False, power_lost=True)
        assert self.synced <= self.log.end_offset <= self.end
        self.cut(self.log.end_offset)

    def cut(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch[1] <= offset]
        self.end = offset

    @invariant()
    def the_ends_agree(self) -> None:
        assert self.log.end_offset == self.log.staged_end == self.end
        assert self.log.log_start_offset == self.start

    @invariant()
    def every_offset_is_read(self) -> None:
        for offset, end, _, epoch in self.batches:
            if end <= self.start:
                continue
            for wanted in {max(offset, self.start), end - 1}:
                piece = self.log.read(wanted, 1, end_offset=self.end)
                assert piece is not None
                batch = Batch(piece.read())
                assert (batch.base_offset, batch.next_offset) == (offset, end)
                assert batch.leader_epoch == epoch == self.log.epochs.epoch_of(wanted)
                assert batch.is_valid

    @invariant()
    def time_is_found(self) -> None:
        visible = [batch for batch in self.batches if batch[1] > self.start]
        found = find_by_timestamp(self.log, self.now)
        late = [batch for batch in visible if batch[2] >= self.now]
        if found is not None:
            assert found.offset >= self.start
            assert any(offset <= found.offset < end for offset, end, _, _ in late)
        else:
            assert all(batch[0] < self.start for batch in late)


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
