"""One node of the pure quorum's world: the machine, a log in memory, and a shell that is as real.

As the broker's shell does it, effects are performed one after the other, a write takes its time,
and its completion is an event behind all that arrived meanwhile. A crash takes everything that was
not synced, the state of the election too.
"""

import pickle
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from random import Random
from typing import TYPE_CHECKING, Any

from ottla.model.types import Monotonic, NodeId, Offset
from ottla.protocol.control_records import VotersRecord
from ottla.quorum import effects as fx
from ottla.quorum.election_state import ElectionState
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.machine import Quorum
from ottla.quorum.voter_history import VoterHistory
from ottla.quorum.voters import Address, ReplicaKey, Voters

if TYPE_CHECKING:
    from tests.simulation.quorum_world import World

CLUSTER = "simulated"
NEVER = Monotonic(1 << 40)
CRASH_AT_EFFECT = 0.002

Event = Callable[[Monotonic], list[fx.Effect]]


@dataclass(frozen=True)
class Entry:
    epoch: int
    value: Any  # A number, or voters.
    begins_batch: bool = True  # Batches are read whole.


@lru_cache(maxsize=256)
def entries_in(snapshot: bytes) -> tuple[Entry, ...]:
    return tuple(pickle.loads(snapshot))


class PureLog:
    """A log of entries in memory, and the part of it that is on disk."""

    def __init__(self, batch_max: int = 5) -> None:
        self.log_start_offset: Offset = 0
        self.entries: list[Entry] = []
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.durable: tuple[Offset, list[Entry]] = (0, [])
        self.batch_max = batch_max

    @property
    def end_offset(self) -> Offset:
        return self.log_start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        if self.entries:
            return self.entries[-1].epoch
        return self.newest_snapshot.epoch if self.newest_snapshot else 0

    def epoch_end(self, epoch: int) -> OffsetAndEpoch | None:
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index].epoch <= epoch:
                return OffsetAndEpoch(self.log_start_offset + index + 1, self.entries[index].epoch)
        return None

    @property
    def oldest_snapshot(self) -> OffsetAndEpoch | None:
        return min(self.snapshots, default=None)

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        return max(self.snapshots, default=None)

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        index = offset - self.log_start_offset
        assert index >= 0, "a read does not begin before the start of the log"
        end = index + min(self.batch_max, bytes_max)
        while end < len(self.entries) and not self.entries[end].begins_batch:
            end += 1
        return pickle.dumps((offset, self.entries[index:end]))

    def read_snapshot(
        self, snapshot: OffsetAndEpoch, position: int, bytes_max: int
    ) -> tuple[bytes, int] | None:
        assert position >= 0, "as a file would refuse it"
        data = self.snapshots.get(snapshot)
        if data is None:
            return None
        return data[position : position + bytes_max], len(data)

    def part(self, start: Offset, end: Offset) -> Sequence[Entry]:
        """Entries from `start` up to, not including, `end`; those of the snapshot too."""
        first = self.log_start_offset
        if start >= first:
            return self.entries[start - first : end - first]
        newest = self.newest_snapshot
        before = entries_in(self.snapshots[newest]) if newest is not None else ()
        return (*before[:first], *self.entries)[start:end]

    def replace_by_snapshot(self, place: OffsetAndEpoch, data: bytes) -> None:
        """The log begins at the snapshot; of the rest, as much is durable as was before."""
        start, synced = self.durable
        self.durable = (place.offset, synced[max(place.offset - start, 0) :])
        del self.entries[: place.offset - self.log_start_offset]
        self.log_start_offset = place.offset
        self.snapshots = {place: data}

    def sync(self) -> None:
        self.durable = (self.log_start_offset, list(self.entries))

    def crash(self, random: Random) -> None:
        start, synced = self.durable
        extends = start == self.log_start_offset and self.entries[: len(synced)] == synced
        if extends:
            end = random.randint(len(synced), len(self.entries))
            while 0 < end < len(self.entries) and not self.entries[end].begins_batch:
                end -= 1  # Half a batch is none.
            del self.entries[end:]
        else:
            self.log_start_offset, self.entries = start, list(synced)
        self.sync()


class Node:
    def __init__(
        self, world: "World", key: ReplicaKey, voters: Voters, *, is_controller: bool = True
    ) -> None:
        self.world = world
        self.key = key
        self.first_voters = voters
        self.is_controller = is_controller
        self.log = PureLog(world.faults.batch_max)
        self.state = self.durable_state = ElectionState()
        self.machine: Quorum | None = None
        self.life = 0
        self.port = 1
        self.pieces = b""
        self.deadline = NEVER  # When the machine wants to be ticked.
        self.paused_until = Monotonic(0)
        self.tickets: dict[int, Callable[[Any], None]] = {}
        self.agreed: Offset = 0  # The log was compared with the committed one up to here.
        self.led_end: Offset = 0  # Where the log that it leads ended last.
        self.high_watermark: Offset = 0  # As its machine said last, in this life.
        self._inbox: deque[Event] = deque()
        self._todo: deque[fx.Effect] = deque()
        self._writing: Callable[[], None] | None = None
        self._active_epoch = -1

    @property
    def quorum(self) -> Quorum:
        assert self.machine is not None, "a dead node does nothing"
        return self.machine

    @property
    def is_leader(self) -> bool:
        return self.machine is not None and self.machine.is_leader

    @property
    def is_paused(self) -> bool:
        return self.paused_until > self.world.now

    # Its life.

    def start(self) -> None:
        self.life += 1
        self.high_watermark = 0
        history = VoterHistory(self.first_voters, 1)
        if self.log.newest_snapshot is not None:
            entries = entries_in(self.log.snapshots[self.log.newest_snapshot])
            history.snapshot_loaded(len(entries), voters_in(entries), 1)
        for offset, entry in enumerate(self.log.entries, self.log.log_start_offset):
            if isinstance(entry.value, Voters) and offset > history.changed_at:
                history.voters_read(offset, entry.value)
        endpoints = {"CONTROLLER": Address(str(self.key.id), self.port)}
        self.machine = Quorum(
            self.key,
            CLUSTER,
            self.log,
            history,
            self.state,
            below=self.world.random.randrange,
            endpoints=endpoints if self.is_controller else {},
            bootstrap=[Address(str(node), 1) for node in self.world.controllers],
            is_controller=self.is_controller,
        )
        self.happened(self.machine.started)

    def crash(self) -> None:
        self.machine = None
        self._inbox.clear()
        self._todo.clear()
        self._writing = None
        self._active_epoch = -1
        self.deadline, self.paused_until = NEVER, Monotonic(0)
        self.tickets.clear()
        self.agreed = 0
        self.state = self.durable_state
        self.log.crash(self.world.random)

    def wipe(self) -> None:
        """A new disk in place of the old one: another replica, which remembers nothing."""
        self.crash()
        number = int.from_bytes(self.key.directory_id) + (1 << 64)
        self.key = ReplicaKey(self.key.id, number.to_bytes(16))
        self.log = PureLog(self.world.faults.batch_max)
        self.state = self.durable_state = ElectionState()

    def voter_sets(self) -> list[Voters]:
        """Those that count here, or did in the part of the log that is left."""
        in_log = [e.value for e in self.log.entries if isinstance(e.value, Voters)]
        return [self.quorum.voters, *in_log]

    # The shell.

    def happened(self, event: Event) -> None:
        self._inbox.append(event)
        self.pump()

    def pump(self) -> None:
        """Perform effects in order, then tell the machine the next event, until a write waits."""
        while self.machine is not None and self._writing is None and not self.is_paused:
            if self._todo:
                self._perform(self._todo.popleft())
            elif self._inbox:
                self._todo.extend(self._inbox.popleft()(self.world.now))
            else:
                deadline = self.machine.next_deadline()
                self.deadline = NEVER if deadline is None else deadline
                return
        self.deadline = NEVER

    def _perform(self, effect: fx.Effect) -> None:
        world = self.world
        if world.may_crash() and world.random.random() < CRASH_AT_EFFECT:
            world.crash(self)
            return
        self._writing = self._act(effect)
        world.rules.check(self)
        if self._writing is None:
            return
        delay_ms = world.disk_delay()
        if delay_ms:
            world.later(delay_ms, partial(self._written, self.life))
        else:
            self._written(self.life)

    def _written(self, life: int) -> None:
        if self.life != life or self._writing is None:
            return
        if self.is_paused:
            self.world.later(self.paused_until - self.world.now, partial(self._written, life))
            return
        finish, self._writing = self._writing, None
        finish()
        self.world.rules.check(self)
        self.pump()

    def _act(self, effect: fx.Effect) -> Callable[[], None] | None:
        """Begin; what is returned finishes it, once the disk has done its part."""
        world = self.world
        match effect:
            case fx.PersistState(state):
                return lambda: self.persist(state)
            case fx.BeginEpoch(epoch, records):
                world.rules.led(self, epoch)
                self._active_epoch = epoch
                return self._append_controls(epoch, records)
            case fx.AppendControl(epoch, records):
                if self._active_epoch == epoch and self.quorum.is_leader:
                    self._append_controls(epoch, records)()
            case fx.EndEpoch():
                self._active_epoch = -1
            case fx.Committed(high_watermark):
                world.rules.committed_by(self, high_watermark)
                self.quorum.history.committed(high_watermark)
            case fx.Send(to, address, request):
                world.rules.exposed(self)
                world.send(self, to, NodeId(int(address.host)), request)
            case fx.Reply(ticket, response):
                self.tickets.pop(ticket, lambda _: None)(response)
            case _:
                return self._follow(effect)
        return None

    def _follow(self, effect: fx.Effect) -> Callable[[], None] | None:
        """Changes of a follower's log."""
        match effect:
            case fx.AppendFetched(data):
                offset, entries = pickle.loads(data)
                assert offset == self.log.end_offset, "batches follow the log"
                for entry in entries:
                    self.append(entry)
                return self._fetched
            case fx.TruncateTo(offset):
                self.truncate(offset)
                self._inbox.append(self.quorum.appended)
            case fx.WriteSnapshotPiece(_, position, data):
                self.pieces = self.pieces[:position] + data
            case fx.InstallSnapshot(snapshot):
                return lambda: self.install(snapshot)
        return None

    def persist(self, state: ElectionState) -> None:
        self.world.rules.persisted(self, state)
        self.state = self.durable_state = state

    def _fetched(self) -> None:
        self.sync_fetched()
        self._inbox.append(self.quorum.appended)

    def sync_log(self) -> None:
        self.log.sync()

    def sync_fetched(self) -> None:
        self.log.sync()

    def truncate(self, offset: Offset) -> None:
        self.world.rules.truncated(self, offset)
        del self.log.entries[offset - self.log.log_start_offset :]
        self.agreed = min(self.agreed, offset)
        self.quorum.history.truncated(offset)

    def install(self, snapshot: OffsetAndEpoch) -> None:
        entries = entries_in(self.pieces)
        assert len(entries) == snapshot.offset, "a snapshot is whole"
        self.world.rules.installed(self)
        self.log.snapshots = {snapshot: self.pieces}
        self.log.log_start_offset, self.log.entries = snapshot.offset, []
        self.log.sync()
        self.agreed = 0
        self.quorum.history.snapshot_loaded(snapshot.offset, voters_in(entries), 1)
        self._inbox.append(self.quorum.snapshot_installed)

    def append(self, entry: Entry) -> None:
        offset = self.log.end_offset
        self.world.rules.appended(offset, entry, self.log.last_epoch)
        self.log.entries.append(entry)
        if isinstance(entry.value, Voters):
            self.quorum.history.voters_read(offset, entry.value)

    def _append_controls(self, epoch: int, records: tuple[Any, ...]) -> Callable[[], None]:
        for index, record in enumerate(records):
            value: Any = type(record).__name__
            if isinstance(record, VotersRecord):
                value = Voters.from_record(record)
                self.world.rules.voters_changed(self, epoch, value)
            self.append(Entry(epoch, value, begins_batch=index == 0))
        self._inbox.append(self.quorum.appended)

        def synced() -> None:
            self.sync_log()
            self._inbox.append(partial(self.quorum.synced, self.log.end_offset))

        return synced

    # The controller on top of it.

    def propose(self, value: int) -> None:
        """Append at once, sync a little later."""
        machine = self.machine
        if machine is None or not machine.is_leader or self.is_paused:
            return
        epoch, life = machine.state.epoch, self.life
        if self._active_epoch != epoch:
            return  # Its epoch has not begun on disk.
        self.append(Entry(epoch, value))
        end = self.log.end_offset

        def synced() -> None:
            if self.life == life and self._active_epoch == epoch and self.is_leader:
                self.sync_log()
                self.happened(partial(machine.synced, end))

        self.world.later(self.world.random.randrange(20), synced)
        self.happened(machine.appended)

    def snapshot(self) -> None:
        """Replace all that is committed by a snapshot."""
        high_watermark = self.machine.high_watermark if self.machine else None
        is_writing = self._writing is not None
        if not high_watermark or high_watermark <= self.log.log_start_offset or is_writing:
            return
        whole = tuple(self.log.part(0, high_watermark))
        place = OffsetAndEpoch(high_watermark, whole[-1].epoch)
        self.log.replace_by_snapshot(place, pickle.dumps(whole))
        self.world.rules.check(self)


def voters_in(entries: Sequence[Entry]) -> Voters | None:
    return next((e.value for e in reversed(entries) if isinstance(e.value, Voters)), None)
