"""What must hold among the replicas of each partition, looked at every few virtual milliseconds.

I1  Log start <= high watermark <= log end; a leader's high watermark does not go back in its epoch.
I2  What is committed is on every member of the ISR and on everyone eligible to lead, and stays.
I3  A leader epoch has one leader.
I4  Logs that have the same batch are alike up to it.
I5  Who joins the ISR has what is committed.
I7  What an idempotent producer sent is there once.

Who is in sync is what the newest committed metadata that any node ever had says of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.broker.partition import Partition
from ottla.broker.quorum_driver import QuorumDriver
from ottla.broker.replicated_partition import ReplicatedPartition
from ottla.broker.server import Broker
from ottla.metadata.cluster import Partition as State
from ottla.model.types import NodeId, Offset, TopicPartition, Uuid
from ottla.records.batch import Batch
from ottla.simulation.chains import NOTHING, Chain, Link
from ottla.simulation.history import Violation
from ottla.simulation.nodes import Nodes
from ottla.storage.log import Log

READ_BYTES = 1 << 20
COMPACTED = "__"  # Topics of our own: their logs have gaps by nature.


@dataclass(slots=True)
class Replica:
    log: Log  # Another one after every start.
    chain: Chain
    tip: tuple[Offset, int] = (-1, -1)  # Where it ended, and in which leader epoch.


@dataclass(slots=True)
class Known:
    """All that anyone has shown of a partition."""

    name: TopicPartition
    committed_end: Offset = 0
    marks: dict[tuple[Offset, int], int] = field(default_factory=dict)
    committed: dict[Offset, int] = field(default_factory=dict)
    leaders: dict[int, NodeId] = field(default_factory=dict)
    sent: dict[tuple[int, int, int], Offset] = field(default_factory=dict)
    replicas: dict[NodeId, Replica] = field(default_factory=dict)
    # Of the last leader: its epoch, its start, and its high watermark.
    watermark: dict[NodeId, tuple[int, int, Offset]] = field(default_factory=dict)


class ReplicaInvariants:
    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._offset: Offset = -1
        self._states: dict[tuple[Uuid, int], State] = {}
        self._known: dict[tuple[Uuid, int], Known] = {}

    def look_at_metadata(self) -> None:
        """After every turn: the newest metadata may be gone with its node soon.

        A node that does not serve yet may be the active controller, and the only one to know.
        """
        for machine in self._nodes.machines.values():
            driver: QuorumDriver | None = getattr(machine.latest, "quorum", None)
            if driver is not None and driver.image.offset > self._offset:
                self._offset = driver.image.offset
                self._states = {
                    (topic.id, index): state
                    for topic in driver.image.topics_by_name.values()
                    for index, state in topic.partitions.items()
                }

    def check(self) -> None:
        serving = self._nodes.serving()
        for number, broker in serving:
            disk = self._nodes.machines[number].disk
            disk.is_observed = True
            for partition in broker.partitions.all():
                key = (partition.topic_id, partition.name.partition)
                if key in self._states:
                    self._look(key, number, partition)
            disk.is_observed = False
        for key, known in self._known.items():
            if key in self._states:
                self._check_in_sync(known, self._states[key], dict(serving))

    def _look(self, key: tuple[Uuid, int], number: NodeId, partition: Partition) -> None:
        log, high_watermark = partition.log, partition.high_watermark
        if not log.log_start_offset <= high_watermark <= log.end_offset:
            raise Violation(
                f"I1: {partition.name} on node {number}: log start {log.log_start_offset}, high "
                f"watermark {high_watermark}, end {log.end_offset}"
            )
        known = self._known.setdefault(key, Known(partition.name))
        if not partition.name.topic.startswith(COMPACTED):
            self._follow(known, number, partition)
        if isinstance(partition, ReplicatedPartition) and partition.leader is not None:
            self._check_leader(known, number, partition)

    def _follow(self, known: Known, number: NodeId, partition: Partition) -> None:
        log = partition.log
        replica = known.replicas.get(number)
        if replica is None or replica.log is not log or replica.chain.end <= log.log_start_offset:
            mark = _mark_before(known, log)
            if mark is None:
                known.replicas.pop(number, None)  # Nobody knows what was there: it is deleted.
                return
            chain = Chain(log.log_start_offset, mark)
            replica = known.replicas[number] = Replica(log, chain)
        tip = (log.end_offset, log.epochs.latest)
        if tip == replica.tip:
            return
        replica.tip = tip

        def batches(start: Offset, end: Offset) -> Iterator[Batch]:
            return batches_of(log, start, end)

        for link in replica.chain.follow(log.end_offset, batches):
            place = (link.last_offset, link.leader_epoch)
            if known.marks.setdefault(place, link.mark) != link.mark:
                raise Violation(
                    f"I4: node {number} has offset {place[0]} of epoch {place[1]} of {known.name} "
                    "as others have it, but not what lies before it"
                )
        _check_once(known, number, replica.chain)

    def _check_leader(self, known: Known, number: NodeId, partition: ReplicatedPartition) -> None:
        epoch, high_watermark = partition.leader_epoch, partition.high_watermark
        leader = known.leaders.setdefault(epoch, number)
        if leader != number:
            raise Violation(f"I3: nodes {leader} and {number} lead {known.name} in epoch {epoch}")
        start = self._nodes.machines[number].starts
        before = known.watermark.get(number)
        if before is not None and before[:2] == (epoch, start) and high_watermark < before[2]:
            raise Violation(f"I1: the high watermark of {known.name} goes back to {high_watermark}")
        known.watermark[number] = (epoch, start, high_watermark)
        if high_watermark <= known.committed_end or number not in known.replicas:
            return
        for link in reversed(known.replicas[number].chain.links):
            if link.last_offset >= high_watermark:
                continue
            if link.last_offset < known.committed_end:
                break
            known.committed[link.last_offset] = link.mark
        known.committed_end = high_watermark

    def _check_in_sync(self, known: Known, state: State, serving: dict[NodeId, Broker]) -> None:
        last = known.committed_end - 1
        if last not in known.committed:
            return
        for number in (*state.isr, *state.elr):
            replica = known.replicas.get(number)
            broker = serving.get(number)
            if replica is None or broker is None:
                continue
            if not any(one.log is replica.log for one in broker.partitions.all()):
                continue  # It has just begun to host it.
            if replica.log.end_offset <= last or replica.chain.mark_at(last) not in (
                known.committed[last],
                None,
            ):
                raise Violation(
                    f"I2: {known.name} is committed up to {last + 1}, and node {number}, in the "
                    f"ISR {state.isr} or eligible {state.elr}, has it up to "
                    f"{replica.log.end_offset}"
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


def _mark_before(known: Known, log: Log) -> int | None:
    """The mark of all that lay before what the log holds now; None if nobody has seen it."""
    start = log.log_start_offset
    first = next(batches_of(log, start, log.end_offset), None)
    base = start if first is None else first.base_offset
    return NOTHING if base == 0 else known.committed.get(base - 1)


def batches_of(log: Log, offset: Offset, end: Offset) -> Iterator[Batch]:
    while offset < end:
        found = log.read(offset, READ_BYTES, end_offset=end)
        assert found is not None, "only what is there is read"
        data, position = found.read(), 0
        while position + 61 <= len(data):
            size = int.from_bytes(data[position + 8 : position + 12]) + 12
            if position + size > len(data):
                break
            batch = Batch(data[position : position + size])
            position += size
            if batch.last_offset >= offset:
                yield batch
                offset = batch.next_offset
