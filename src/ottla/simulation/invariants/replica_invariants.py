"""What must hold among the replicas of each partition, looked at every few virtual milliseconds.

I1  Log start <= high watermark <= log end; a leader's high watermark does not go back in its epoch.
I2  What is committed is on every member of the ISR and on everyone eligible to lead, and stays.
I3  A leader epoch has one leader.
I4  Logs that have the same batch are alike up to it.
I5  Who joins the ISR has what is committed.
I6  A log begins no later than records were deleted, or retention allows.
I7  What an idempotent producer sent is there once.
I8  No client is given a record, or an end of the log, beyond what some leader calls committed.

Who is in sync is what the newest committed metadata that any node ever had says of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from weakref import ref

from ottla.broker.node import inspection
from ottla.broker.node.inspection import PartitionView
from ottla.metadata.image.cluster import Partition as State
from ottla.model.types import NodeId, Offset, TopicPartition, Uuid
from ottla.simulation.clients.workload import TOPIC_PREFIX
from ottla.simulation.history.history import Trim, Violation
from ottla.simulation.invariants.chains import NOTHING, Chain, Link
from ottla.simulation.invariants.known_metadata import KnownMetadata
from ottla.simulation.world.nodes import Nodes

# Internal topics, and compacted ones of clients: their logs have gaps by nature.
COMPACTED = ("__", "hostile-compacted", "keyed-")

Key = tuple[Uuid, int]


@dataclass(slots=True)
class Replica:
    log: ref[object]  # Another one after every start. Does not keep its files open.
    end: Offset
    chain: Chain
    tip: tuple[Offset, int] = (-1, -1)  # Where it ended, and in which leader epoch.


@dataclass(slots=True)
class Known:
    """All that anyone has shown of a partition."""

    name: TopicPartition
    committed_end: Offset = 0
    unclean_epoch: int = -1  # Leaders of earlier epochs do not say what is committed.
    marks: dict[tuple[Offset, int], int] = field(default_factory=dict)
    committed: dict[Offset, int] = field(default_factory=dict)
    leaders: dict[int, NodeId] = field(default_factory=dict)
    sent: dict[tuple[int, int, int], Offset] = field(default_factory=dict)
    replicas: dict[NodeId, Replica] = field(default_factory=dict)
    # Of the last leader: its epoch, its start, and its high watermark.
    watermark: dict[NodeId, tuple[int, int, Offset]] = field(default_factory=dict)


class ReplicaInvariants:
    def __init__(
        self,
        nodes: Nodes,
        metadata: KnownMetadata,
        trims: Mapping[TopicPartition, Trim],
        retention_bytes: int | None,
    ) -> None:
        """`trims`: which records clients have deleted, of each partition."""
        self._nodes = nodes
        self._metadata = metadata
        self._trims = trims
        self._retention_bytes = retention_bytes
        self._known: dict[Key, Known] = {}
        self._called_committed: dict[TopicPartition, Offset] = {}
        self._led: dict[str, list[PartitionView]] = {}  # By each node, when it last sent.

    def check(self) -> None:
        hosted: dict[NodeId, dict[Key, PartitionView]] = {}
        for number, broker in self._nodes.serving():
            disk = self._nodes.machines[number].disk
            disk.is_observed = True
            views = hosted[number] = {}
            for view in inspection.partitions(broker):
                key = (view.topic_id, view.name.partition)
                views[key] = view
                if key in self._metadata.committed:
                    self._look(key, number, view)
            disk.is_observed = False
        for key, known in self._known.items():
            if (state := self._metadata.committed.get(key)) is not None:
                _check_in_sync(known, state, {n: v[key] for n, v in hosted.items() if key in v})

    def note_sending(self, host: str) -> None:
        """Before a node sends: its answers rest on what its leaders call committed now."""
        machine = self._nodes.at(host)
        if machine is None or machine.latest is None:
            self._led.pop(host, None)
            return
        led = [view for view in inspection.partitions(machine.latest) if view.is_leader]
        called = self._called_committed
        # Also those that a failed disk took offline in this turn, after they had committed.
        for view in (*self._led.get(host, ()), *led):
            if view.high_watermark > called.get(view.name, 0):
                called[view.name] = view.high_watermark
        self._led[host] = led

    def committed_end(self, place: TopicPartition) -> Offset:
        """The highest offset that a leader has ever called committed."""
        return self._called_committed.get(place, 0)

    def forget(self) -> None:
        """Records that were committed may be lost, and offsets be given to others."""
        self._known.clear()

    def elected_uncleanly(self, key: Key, epoch: int) -> None:
        """Records of earlier leader epochs that were committed may be lost."""
        if (known := self._known.get(key)) is not None:
            known.unclean_epoch, known.committed_end = epoch, 0
            known.committed.clear()

    def _look(self, key: Key, number: NodeId, view: PartitionView) -> None:
        start, high_watermark, end = view.log_start_offset, view.high_watermark, view.end_offset
        # Its high watermark may be below where its log still starts.
        is_in_order = start <= high_watermark or view.is_about_to_truncate
        if not is_in_order or not high_watermark <= end <= view.staged_end:
            raise Violation(
                f"I1: {view.name} on node {number}: log start {start}, high watermark "
                f"{high_watermark}, end {end}, staged {view.staged_end}"
            )
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Known(view.name)
        if not view.name.topic.startswith(COMPACTED):
            _follow(known, number, view)
        if view.is_leader:
            self._check_leader(known, number, view)
            if view.name.topic.startswith(TOPIC_PREFIX):
                self._check_start(view)

    def _check_leader(self, known: Known, number: NodeId, view: PartitionView) -> None:
        epoch, high_watermark = view.leader_epoch, view.high_watermark
        leader = known.leaders.setdefault(epoch, number)
        if leader != number:
            raise Violation(f"I3: nodes {leader} and {number} lead {known.name} in epoch {epoch}")
        start = self._nodes.machines[number].starts
        before = known.watermark.get(number)
        if before is not None and before[:2] == (epoch, start) and high_watermark < before[2]:
            raise Violation(f"I1: the high watermark of {known.name} goes back to {high_watermark}")
        known.watermark[number] = (epoch, start, high_watermark)
        if epoch < known.unclean_epoch:
            return
        if high_watermark <= known.committed_end or number not in known.replicas:
            return
        for link in reversed(known.replicas[number].chain.links):
            if link.last_offset >= high_watermark:
                continue
            if link.last_offset < known.committed_end:
                break
            known.committed[link.last_offset] = link.mark
        known.committed_end = high_watermark

    def _check_start(self, view: PartitionView) -> None:
        """Retention leaves so many bytes; a leader that was elected just now may have fewer."""
        trim, start = self._trims[view.name], view.log_start_offset
        if self._nodes.is_one and start < trim.done:
            raise Violation(f"I6: {view.name}: deleted up to {trim.done}, and begins at {start}")
        if start <= trim.start_max:
            return
        is_kept = self._retention_bytes is not None and (
            view.size_bytes >= self._retention_bytes or not self._nodes.is_one
        )
        if not is_kept:
            raise Violation(
                f"I6: {view.name}: begins at {start}, with {view.size_bytes} bytes left; deletion "
                f"was asked for up to {trim.asked}"
            )
        trim.retained = start


def _follow(known: Known, number: NodeId, view: PartitionView) -> None:
    replica, log = known.replicas.get(number), view.log_identity
    start, end = view.log_start_offset, view.end_offset
    if replica is not None:
        replica.chain.cut(end)
    # A log truncated below its start begins earlier than before.
    is_same = replica is not None and replica.log() is log
    if replica is None or not is_same or not replica.chain.start <= start < replica.chain.end:
        mark = _mark_before(known, view)
        if mark is None:
            known.replicas.pop(number, None)  # Nobody knows what was there: it is deleted.
            return
        replica = known.replicas[number] = Replica(ref(log), end, Chain(start, mark))
    replica.end = end
    tip = (end, view.last_epoch)
    if tip == replica.tip:
        return
    replica.tip = tip
    for link in replica.chain.follow(end, view.batches):
        place = (link.last_offset, link.leader_epoch)
        if known.marks.setdefault(place, link.mark) != link.mark:
            raise Violation(
                f"I4: node {number} has offset {place[0]} of epoch {place[1]} of {known.name} "
                "as others have it, but not what lies before it"
            )
    _check_once(known, number, replica.chain)


def _check_in_sync(known: Known, state: State, hosted: dict[NodeId, PartitionView]) -> None:
    last = known.committed_end - 1
    if last not in known.committed:
        return
    for number in (*state.isr, *state.elr):
        replica, view = known.replicas.get(number), hosted.get(number)
        if replica is None or view is None or view.log_identity is not replica.log():
            continue  # It does not serve, or has just begun to host it.
        marks = (known.committed[last], None)
        if replica.end <= last or replica.chain.mark_at(last) not in marks:
            raise Violation(
                f"I2: {known.name} is committed up to {last + 1}, and node {number}, in the "
                f"ISR {state.isr} or eligible {state.elr}, has it up to {replica.end}"
            )


def _check_once(known: Known, number: NodeId, chain: Chain) -> None:
    links: list[Link] = []
    for link in reversed(chain.links):
        if known.sent.get(link.batch) == link.last_offset:
            break
        links.append(link)
    for link in links:
        if link.batch[0] < 0:
            continue
        other = known.sent.get(link.batch)
        is_there = other is not None and other <= chain.end and chain.mark_at(other) is not None
        if is_there and other != link.last_offset and _has(chain, other, link.batch):
            raise Violation(
                f"I7: batch {link.batch} of {known.name} lies at {other} and at "
                f"{link.last_offset} on node {number}"
            )
        known.sent[link.batch] = link.last_offset


def _has(chain: Chain, offset: Offset | None, batch: tuple[int, int, int]) -> bool:
    return any(link.last_offset == offset and link.batch == batch for link in chain.links)


def _mark_before(known: Known, view: PartitionView) -> int | None:
    """The mark of all that lay before what the log holds now; None if nobody has seen it."""
    start = view.log_start_offset
    first = next(view.batches(start, view.end_offset), None)
    base = start if first is None else first.base_offset
    if base == 0:
        return NOTHING
    if known.unclean_epoch >= 0 and (first is None or first.leader_epoch < known.unclean_epoch):
        return None  # A log from before an unclean election: its beginning may be another one.
    return known.committed.get(base - 1)
