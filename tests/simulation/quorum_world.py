"""A quorum of pure machines in virtual time: no loop, no sockets, no files, all from one seed.

Requests and answers are lost, late, doubled and out of order; nodes crash between any two effects
and lose what they did not sync; voters come and go. After every event the promises of the quorum
are checked against what all nodes together have seen.
"""

# ruff: noqa: ANN401

import heapq
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from ottla.model.types import Monotonic, NodeId, Offset
from ottla.protocol.control_records import VotersRecord
from ottla.protocol.messages import add_raft_voter, api_versions, remove_raft_voter, vote
from ottla.quorum import effects as fx
from ottla.quorum.election_state import ElectionState
from ottla.quorum.leadership import Leader
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.machine import Quorum
from ottla.quorum.messages import partition_of
from ottla.quorum.voter_history import VoterHistory
from ottla.quorum.voters import Address, ReplicaKey, Voter, Voters

CLUSTER = "simulated"
NEVER = 1 << 40


class Violation(Exception):
    """A promise was broken."""


@dataclass(frozen=True)
class Entry:
    epoch: int
    value: Any  # A number, or voters.


class PureLog:
    """A log of entries in memory, and what of it is on disk."""

    def __init__(self) -> None:
        self.log_start_offset: Offset = 0
        self.entries: list[Entry] = []
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.durable: tuple[Offset, list[Entry]] = (0, [])

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
        assert index >= 0, "nobody reads before the start"
        return pickle.dumps((offset, self.entries[index : index + 1 + bytes_max % 7]))

    def read_snapshot(
        self, snapshot: OffsetAndEpoch, position: int, bytes_max: int
    ) -> tuple[bytes, int] | None:
        data = self.snapshots.get(snapshot)
        if data is None:
            return None
        return data[position : position + bytes_max], len(data)

    def sync(self) -> None:
        self.durable = (self.log_start_offset, list(self.entries))

    def crash(self, random: Random) -> None:
        start, synced = self.durable
        extends = start == self.log_start_offset and self.entries[: len(synced)] == synced
        if extends:
            self.entries = self.entries[: random.randint(len(synced), len(self.entries))]
        else:
            self.log_start_offset, self.entries = start, list(synced)
        self.sync()


class Node:
    def __init__(self, world: "World", key: ReplicaKey, voters: Voters) -> None:
        self.world = world
        self.key = key
        self.first_voters = voters
        self.log = PureLog()
        self.state = self.durable_state = ElectionState()
        self.machine: Quorum | None = None
        self.life = 0
        self.pieces = b""
        self.deadline = NEVER  # When its machine wants to be ticked.
        self.tickets: dict[int, Callable[[Any], None]] = {}

    @property
    def quorum(self) -> Quorum:
        assert self.machine is not None, "a dead node does nothing"
        return self.machine

    def start(self) -> None:
        self.life += 1
        history = VoterHistory(self.first_voters, 1)
        if self.log.newest_snapshot is not None:
            entries = pickle.loads(self.log.snapshots[self.log.newest_snapshot])
            history.snapshot_loaded(len(entries), _voters_in(entries), 1)
        for offset, entry in enumerate(self.log.entries, self.log.log_start_offset):
            if isinstance(entry.value, Voters) and offset > history.changed_at:
                history.voters_read(offset, entry.value)
        self.machine = Quorum(
            self.key,
            CLUSTER,
            self.log,
            history,
            self.state,
            below=self.world.random.randrange,
            endpoints={"CONTROLLER": Address(str(self.key.id), 1)},
            bootstrap=[Address(str(node), 1) for node in sorted(self.world.nodes)],
        )
        self.perform(self.machine.started(self.world.now))

    def crash(self) -> None:
        self.machine = None
        self.tickets.clear()
        self.state = self.durable_state
        self.log.crash(self.world.random)

    def perform(self, todo: list[fx.Effect]) -> None:
        self.do(todo)
        deadline = self.machine.next_deadline() if self.machine is not None else None
        self.deadline = NEVER if deadline is None else deadline

    def do(self, todo: list[fx.Effect]) -> None:
        for effect in todo:
            if self.machine is None:
                return
            if self.world.may_crash() and self.world.random.random() < 0.002:
                self.world.crash(self)
                return
            self.act(effect)
            self.world.check(self)

    def act(self, effect: fx.Effect) -> None:
        world = self.world
        match effect:
            case fx.PersistState(state):
                self.persist(state)
            case fx.BeginEpoch(epoch, records):
                world.led(self, epoch)
                self.append_controls(epoch, records)
            case fx.AppendControl(epoch, records):
                self.append_controls(epoch, records)
            case fx.Committed(high_watermark):
                world.committed_by(self, high_watermark)
            case fx.Send(to, address, request):
                world.send(self, to, NodeId(int(address.host)), request)
            case fx.Reply(ticket, response):
                self.tickets.pop(ticket, lambda _: None)(response)
            case _:
                self.write(effect)

    def write(self, effect: fx.Effect) -> None:
        """What a follower does to its log."""
        world, quorum = self.world, self.quorum
        match effect:
            case fx.AppendFetched(data):
                offset, entries = pickle.loads(data)
                assert offset == self.log.end_offset, "batches follow the log"
                for entry in entries:
                    self.append(entry)
                self.sync_fetched()
                self.perform(quorum.appended(world.now))
            case fx.TruncateTo(offset):
                if quorum.is_leader:
                    raise Violation(f"{self.key.id} leads and cuts its log")
                self.truncate(offset)
                self.perform(quorum.appended(world.now))
            case fx.WriteSnapshotPiece(_, position, data):
                self.pieces = self.pieces[:position] + data
            case fx.InstallSnapshot(snapshot):
                self.install(snapshot)
                self.perform(quorum.snapshot_installed(world.now))

    def persist(self, state: ElectionState) -> None:
        if state.epoch < self.durable_state.epoch:
            raise Violation("an epoch went back")
        self.state = self.durable_state = state

    def sync_log(self) -> None:
        self.log.sync()

    def sync_fetched(self) -> None:
        self.log.sync()

    def truncate(self, offset: Offset) -> None:
        del self.log.entries[offset - self.log.log_start_offset :]
        self.quorum.history.truncated(offset)

    def install(self, snapshot: OffsetAndEpoch) -> None:
        entries = pickle.loads(self.pieces)
        assert len(entries) == snapshot.offset, "a snapshot is whole"
        self.log.snapshots = {snapshot: self.pieces}
        self.log.log_start_offset, self.log.entries = snapshot.offset, []
        self.log.sync()
        self.quorum.history.snapshot_loaded(snapshot.offset, _voters_in(entries), 1)

    def append(self, entry: Entry) -> None:
        offset = self.log.end_offset
        before = self.log.last_epoch
        self.log.entries.append(entry)
        self.world.appended(offset, entry, before)
        if isinstance(entry.value, Voters):
            self.quorum.history.voters_read(offset, entry.value)

    def append_controls(self, epoch: int, records: tuple[Any, ...]) -> None:
        for record in records:
            value: Any = type(record).__name__
            if isinstance(record, VotersRecord):
                value = Voters.from_record(record)
            self.append(Entry(epoch, value))
        self.sync_log()
        end = self.log.end_offset
        self.perform(self.quorum.appended(self.world.now))
        if self.machine is not None:
            self.perform(self.quorum.synced(end, self.world.now))

    def propose(self, value: int) -> None:
        """What a controller does: append at once, sync a little later."""
        if self.machine is None or not self.machine.is_leader:
            return
        self.append(Entry(self.machine.state.epoch, value))
        end, life, epoch = self.log.end_offset, self.life, self.machine.state.epoch
        self.perform(self.machine.appended(self.world.now))

        def synced() -> None:
            machine = self.machine
            if machine is None or self.life != life or machine.state.epoch != epoch:
                return
            if machine.is_leader:
                self.sync_log()
                self.perform(machine.synced(end, self.world.now))

        self.world.later(self.world.random.randrange(20), synced)

    def snapshot(self) -> None:
        """Replace what is committed by a snapshot."""
        high_watermark = self.machine.high_watermark if self.machine else None
        if not high_watermark or high_watermark <= self.log.log_start_offset:
            return
        whole = self.world.history_below(self, high_watermark)
        place = OffsetAndEpoch(high_watermark, whole[-1].epoch)
        self.log.snapshots = {place: pickle.dumps(whole)}
        del self.log.entries[: high_watermark - self.log.log_start_offset]
        self.log.log_start_offset = high_watermark
        self.log.sync()


class Exchange:
    """A request on its way, and its answer."""

    def __init__(
        self, world: "World", source: Node, to: NodeId, target: NodeId, request: Any
    ) -> None:
        self.world, self.source, self.to, self.target = world, source, to, target
        self.request = request
        self.machine: Quorum | None = source.quorum  # None once it is over.

    def arrive(self) -> None:
        world = self.world
        if not world.is_linked(self.source.key.id, self.target):
            return
        node = world.nodes[self.target]
        if node.machine is None:
            world.later(1, lambda: self.fail(is_closed=True))
        elif isinstance(self.request, api_versions.Request):
            feature = api_versions.SupportedFeatureKey("kraft.version", 0, 1)
            self.answered(api_versions.Response(supported_features=[feature]))
        else:
            ticket = next(world.numbers)
            node.tickets[ticket] = self.answered
            node.perform(node.machine.received(ticket, self.request, world.now))

    def answered(self, response: Any) -> None:
        self.world.note_vote(self.target, self.request, response)
        is_linked = self.world.is_linked(self.source.key.id, self.target)
        if is_linked and not self.world.drops():
            self.world.later(self.world.delay(), lambda: self.deliver(response))

    def deliver(self, response: Any) -> None:
        machine, self.machine = self.machine, None
        if machine is not None and self.source.machine is machine:
            now = self.world.now
            self.source.perform(machine.answered(self.to, self.request, response, now))

    def fail(self, *, is_closed: bool) -> None:
        machine, self.machine = self.machine, None
        if machine is not None and self.source.machine is machine:
            now = self.world.now
            failed = machine.failed(self.to, self.request, now, is_closed=is_closed)
            self.source.perform(failed)


@dataclass
class Faults:
    lost: float = 0.03
    closed: float = 0.02
    doubled: float = 0.02
    delay_ms_max: int = 60
    crash_every_ms: int = 1000
    partition_every_ms: int = 2500
    snapshot_every_ms: int = 900
    change_every_ms: int = 4000


@dataclass
class World:
    seed: int
    size: int = 3
    spare: int = 1
    faults: Faults = field(default_factory=Faults)
    node_class: type[Node] = Node

    def __post_init__(self) -> None:
        self.now = Monotonic(0)
        self.random = Random(self.seed)
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.numbers = count()
        self.nodes: dict[NodeId, Node] = {}
        self.leaders: dict[int, NodeId] = {}
        self.votes: dict[tuple[NodeId, int], NodeId] = {}
        self.committed: list[Entry] = []
        self.seen: dict[tuple[Offset, int], tuple[Any, int]] = {}
        self.cut_off: set[NodeId] = set()
        self.is_healed = False
        self.elections = 0
        self.under_way: list[Exchange] = []
        keys = [self.key(NodeId(n)) for n in range(1, self.size + self.spare + 1)]
        voters = Voters.of(self.voter(key) for key in keys[: self.size])
        for key in keys:
            self.nodes[key.id] = self.node_class(self, key, voters)

    @staticmethod
    def key(node: NodeId) -> ReplicaKey:
        return ReplicaKey(node, bytes([node]) * 16)

    @staticmethod
    def voter(key: ReplicaKey) -> Voter:
        return Voter(key.id, key.directory_id, {"CONTROLLER": Address(str(key.id), 1)})

    # Time.

    def later(self, delay_ms: int, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + delay_ms, next(self.numbers), event))

    def run(self, until_ms: int) -> None:
        while self.now < until_ms:
            due = min(
                self.events[0][0] if self.events else until_ms,
                until_ms,
                *(max(node.deadline, self.now + 1) for node in self.nodes.values()),
            )
            self.now = Monotonic(max(self.now, due))
            while self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
            for node in list(self.nodes.values()):
                if node.machine is not None and node.deadline <= self.now:
                    node.perform(node.machine.tick(self.now))

    def every(self, mean_ms: int, event: Callable[[], None]) -> None:
        def again() -> None:
            if not self.is_healed:
                event()
                self.later(1 + int(self.random.expovariate(1 / mean_ms)), again)

        if mean_ms:
            self.later(1 + int(self.random.expovariate(1 / mean_ms)), again)

    # The network.

    def is_linked(self, one: NodeId, other: NodeId) -> bool:
        return self.is_healed or (one in self.cut_off) == (other in self.cut_off)

    def send(self, source: Node, to: NodeId, target: NodeId, request: Any) -> None:
        exchange = Exchange(self, source, to, target, request)
        self.under_way = [e for e in self.under_way if e.machine is not None] + [exchange]
        self.later(2000, lambda: exchange.fail(is_closed=False))
        if not self.is_healed and self.random.random() < self.faults.closed:
            self.later(self.delay(), lambda: exchange.fail(is_closed=True))
        if not self.drops():
            self.later(self.delay(), exchange.arrive)
        if not self.is_healed and self.random.random() < self.faults.doubled:
            self.later(self.delay() * 5, exchange.arrive)

    def drops(self) -> bool:
        return not self.is_healed and self.random.random() < self.faults.lost

    def delay(self) -> int:
        return 1 + self.random.randrange(1 if self.is_healed else self.faults.delay_ms_max)

    # Misfortunes.

    def may_crash(self) -> bool:
        return not self.is_healed and bool(self.faults.crash_every_ms)

    def crash(self, node: Node) -> None:
        if node.machine is None:
            return
        node.crash()
        self.later(self.random.randrange(1500), lambda: self.restart(node))

    def restart(self, node: Node) -> None:
        if node.machine is None:
            node.start()

    def partition(self) -> None:
        nodes = sorted(self.nodes)
        some = self.random.sample(nodes, self.random.randrange(len(nodes)))
        self.cut_off = set(some) if self.random.random() < 0.6 else set()

    def change_voters(self) -> None:
        leader = next((n for n in self.nodes.values() if n.machine and n.machine.is_leader), None)
        if leader is None:
            return
        key = self.key(self.random.choice(sorted(self.nodes)))
        request: Any
        if key.id in leader.quorum.voters.by_id:
            request = remove_raft_voter.Request(CLUSTER, key.id, key.directory_id)
        else:
            where = [add_raft_voter.Listener("CONTROLLER", str(key.id), 1)]
            request = add_raft_voter.Request(CLUSTER, 3000, key.id, key.directory_id, where)
        leader.perform(leader.quorum.received(next(self.numbers), request, self.now))

    def propose(self) -> None:
        leaders = [n for n in self.nodes.values() if n.machine and n.machine.is_leader]
        if leaders:
            self.random.choice(leaders).propose(next(self.numbers))

    def crash_one(self) -> None:
        """Leaders are the more interesting victims."""
        leaders = [n for n in self.nodes.values() if n.machine and n.machine.is_leader]
        everyone = [self.nodes[node] for node in sorted(self.nodes)]
        self.crash(self.random.choice(leaders * 3 + everyone))

    def snapshot_one(self) -> None:
        self.nodes[self.random.choice(sorted(self.nodes))].snapshot()

    # The whole story.

    def story(self, ms: int = 12_000) -> None:
        self.play(ms)
        self.heal()

    def play(self, ms: int) -> None:
        """Nothing but misfortune."""
        for node in self.nodes.values():
            self.later(self.random.randrange(300), lambda node=node: self.restart(node))
        self.every(25, self.propose)
        self.every(self.faults.crash_every_ms, self.crash_one)
        self.every(self.faults.partition_every_ms, self.partition)
        self.every(self.faults.snapshot_every_ms, self.snapshot_one)
        self.every(self.faults.change_every_ms, self.change_voters)
        self.run(ms)

    def heal(self) -> None:
        """All is well again: soon there is a leader, and it commits, and everyone hears of it."""
        self.is_healed = True
        for node in self.nodes.values():
            self.restart(node)
        self.run(self.now + 10_000)
        leaders = [n for n in self.nodes.values() if n.quorum.is_leader]
        if len(leaders) != 1:
            raise Violation(f"{len(leaders)} leaders when all is well")
        leaders[0].propose(-1)
        self.run(self.now + 3_000)
        if self.committed[-1].value != -1:
            raise Violation("nothing is committed when all is well")
        for node in self.nodes.values():
            if node.quorum.high_watermark != len(self.committed):
                raise Violation(f"{node.key.id} has not heard what is committed")

    # The promises.

    def appended(self, offset: Offset, entry: Entry, epoch_before: int) -> None:
        known = self.seen.setdefault((offset, entry.epoch), (entry.value, epoch_before))
        if known != (entry.value, epoch_before):
            raise Violation(f"offset {offset} of epoch {entry.epoch} is there in two ways")

    def led(self, node: Node, epoch: int) -> None:
        self.elections += 1
        if self.leaders.setdefault(epoch, node.key.id) != node.key.id:
            raise Violation(f"epoch {epoch} has two leaders")
        have = self.history_below(node, node.log.end_offset)
        if have[: len(self.committed)] != self.committed:
            raise Violation(f"the leader of epoch {epoch} lacks what is committed")

    def committed_by(self, node: Node, high_watermark: Offset) -> None:
        have = self.history_below(node, high_watermark)
        both = min(len(have), len(self.committed))
        if have[:both] != self.committed[:both]:
            raise Violation(f"{node.key.id} commits something else below {both}")
        if len(have) > len(self.committed):
            self.committed = have
        leader = node.quorum.role
        if isinstance(leader, Leader):
            voters = node.quorum.voters
            holders = sum(self.holds(self.nodes[n], high_watermark) for n in voters.by_id)
            if holders < voters.majority:
                raise Violation(f"{high_watermark} is on {holders} disks of {len(voters.by_id)}")

    def holds(self, node: Node, end: Offset) -> bool:
        start, entries = node.log.durable
        return start >= end or (
            start + len(entries) >= end and entries[end - 1 - start] == self.committed[end - 1]
        )

    def history_below(self, node: Node, end: Offset) -> list[Entry]:
        log = node.log
        before = pickle.loads(log.snapshots[log.newest_snapshot]) if log.newest_snapshot else []
        return (before[: log.log_start_offset] + log.entries)[:end]

    def note_vote(self, voter: NodeId, request: Any, response: Any) -> None:
        if isinstance(request, vote.Request):
            asked, said = partition_of(request), partition_of(response)
            if said.vote_granted and not asked.pre_vote:
                given = (voter, asked.replica_epoch)
                if self.votes.setdefault(given, asked.replica_id) != asked.replica_id:
                    raise Violation(f"{voter} votes twice in epoch {asked.replica_epoch}")

    def check(self, node: Node) -> None:
        if node.machine is None:
            return
        if node.machine.state.epoch < node.durable_state.epoch:
            raise Violation("an epoch went back")
        high_watermark = node.machine.high_watermark
        if high_watermark is not None and high_watermark > node.log.end_offset:
            raise Violation("the log ends before its high watermark")


def _voters_in(entries: list[Entry]) -> Voters | None:
    return next((e.value for e in reversed(entries) if isinstance(e.value, Voters)), None)
