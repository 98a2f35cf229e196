"""Read-only views of a running broker, for simulation, tests and benchmarks.

Code outside this package looks into a broker only through these views: a change of the broker's
structure changes this module, and no invariant and no test. A view reads the broker's state when
it is asked and changes nothing; it is valid only in the turn of the loop in which it was made.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.broker.controller.metadata_log_reader import batches_between
from ottla.broker.controller.quorum_driver import QuorumDriver
from ottla.broker.node.broker import Broker
from ottla.broker.partitions.partition import Partition
from ottla.groups.coordinator import GroupCoordinator
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import NodeId, Offset, TopicPartition, Uuid
from ottla.quorum.election_state import ElectionState
from ottla.quorum.leadership import Leader
from ottla.quorum.voters import Voters
from ottla.records.batch import Batch, walk_batches
from ottla.storage.log import Log

READ_BYTES = 1 << 20


class PartitionView:
    """A replica that a broker hosts: its role, its log and how far it is committed."""

    __slots__ = ("_partition",)

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    @property
    def name(self) -> TopicPartition:
        return self._partition.name

    @property
    def topic_id(self) -> Uuid:
        return self._partition.topic_id

    @property
    def is_leader(self) -> bool:
        return self._partition.is_leader

    @property
    def leader_epoch(self) -> int:
        return self._partition.leader_epoch

    @property
    def high_watermark(self) -> Offset:
        return self._partition.high_watermark

    @property
    def is_about_to_truncate(self) -> bool:
        """True if this follower has lowered its high watermark before it truncates its log."""
        follower = getattr(self._partition, "follower", None)
        return follower is not None and self.high_watermark < follower.high_watermark

    @property
    def proposed_isr(self) -> frozenset[NodeId] | None:
        """The ISR that this leader has asked the controller for, None if it waits for none."""
        leader = getattr(self._partition, "leader", None)
        if leader is None or leader._pending is None:
            return None
        return frozenset(node for node, _ in leader._pending.isr)

    @property
    def log_identity(self) -> object:
        """Another object whenever the log was opened or created again."""
        return self._partition.log

    @property
    def log_start_offset(self) -> Offset:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> Offset:
        return self._partition.log.end_offset

    @property
    def staged_end(self) -> Offset:
        return self._partition.log.staged_end

    @property
    def size_bytes(self) -> int:
        return self._partition.log.size_bytes

    @property
    def last_epoch(self) -> int:
        """Leader epoch of the last batch, -1 if there is none."""
        return self._partition.log.epochs.latest

    def batches(self, start: Offset, end: Offset) -> Iterator[Batch]:
        """Batches from the one that holds `start` on, up to `end`."""
        return _batches(self._partition.log, start, end)


class QuorumView:
    """A node's part in the metadata quorum: its role, its metadata log and its images."""

    __slots__ = ("_driver",)

    def __init__(self, driver: QuorumDriver) -> None:
        self._driver = driver

    @property
    def role(self) -> object:
        return self._driver.quorum.role

    @property
    def led_epoch(self) -> int | None:
        """The epoch that this node leads, None where it does not."""
        role = self._driver.quorum.role
        return role.epoch if isinstance(role, Leader) else None

    @property
    def epoch_start_offset(self) -> Offset | None:
        """Where the epoch that this node leads begins, None where it does not lead."""
        role = self._driver.quorum.role
        return role.epoch_start_offset if isinstance(role, Leader) else None

    @property
    def state(self) -> ElectionState:
        return self._driver.quorum.state

    @property
    def voters(self) -> Voters:
        return self._driver.quorum.voters

    @property
    def high_watermark(self) -> Offset | None:
        return self._driver.quorum.high_watermark

    @property
    def is_settled(self) -> bool:
        """True if every effect of the quorum so far is performed: what it decided is on disk."""
        shell = self._driver.shell
        return shell._performing is None and not shell._is_closed

    @property
    def log_start_offset(self) -> Offset:
        return self._driver.log.log_start_offset

    @property
    def end_offset(self) -> Offset:
        return self._driver.log.end_offset

    @property
    def log_size_bytes(self) -> int:
        return self._driver.log.storage.size_bytes

    @property
    def snapshot_ends(self) -> list[Offset]:
        return [snapshot.end_offset for snapshot in self._driver.log.snapshots.ids]

    def batches(self, start: Offset, end: Offset) -> Iterator[Batch]:
        batches = batches_between(self._driver.log.storage, start, end)
        return (batch for _, _, batch in batches)

    @property
    def image(self) -> ClusterImage:
        """The committed metadata that this node has applied."""
        return self._driver.image

    @property
    def is_active_controller(self) -> bool:
        return self._driver.is_leader

    @property
    def decided_image(self) -> ClusterImage | None:
        """The active controller's image with its uncommitted decisions; None on other nodes."""
        active = self._driver.commits.active
        return None if active is None else active.controller.image


def partitions(broker: Broker) -> list[PartitionView]:
    return [PartitionView(partition) for partition in broker.partitions.all()]


def quorum(broker: Broker | None) -> QuorumView | None:
    """None unless the metadata log is open; a broker that still starts may take part already."""
    driver: QuorumDriver | None = getattr(broker, "quorum", None)
    if driver is None or not driver.log.is_open:
        return None
    return QuorumView(driver)


class CoordinatorView(NamedTuple):
    """A loaded group coordinator."""

    partition: int  # Of the offsets topic.
    topic_id: Uuid
    leader_epoch: int
    machine: GroupCoordinator
    committed_end: Offset  # Replies may rest on every record below.
    high_watermark: Offset  # Of its partition.
    is_writable: bool  # Timers of groups wait while the log takes no records.


def coordinators(broker: Broker) -> Iterator[CoordinatorView]:
    for index, partition in broker.groups._machines.items():
        coordinator = partition._machine
        assert isinstance(coordinator, GroupCoordinator), "its log holds groups"
        if partition.is_loaded:
            yield CoordinatorView(
                index,
                partition.partition.topic_id,
                partition.partition.leader_epoch,
                coordinator,
                partition._host._committed_end,
                partition.partition.high_watermark,
                partition.is_writable,
            )


def _batches(log: Log, offset: Offset, end: Offset) -> Iterator[Batch]:
    while offset < end:
        found = log.read(offset, READ_BYTES, end_offset=end)
        assert found is not None, "only offsets of the log are read"
        first = offset
        for batch in walk_batches(found.read()):
            if batch.last_offset >= offset:
                yield batch
                offset = batch.next_offset
        if offset == first:
            return  # The file holds less than the log says: its batches are not written yet.
