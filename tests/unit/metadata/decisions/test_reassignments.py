from ottla.metadata.image.cluster import Partition
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import alter_partition
from ottla.protocol.messages import alter_partition_reassignments as wire
from ottla.protocol.messages import list_partition_reassignments as list_wire
from ottla.protocol.metadata_records import PartitionChangeRecord
from tests.unit.metadata.controller_driver import ControllerDriver


class Moving:
    """Four brokers, and a partition on two of them."""

    def __init__(self) -> None:
        self.deciding = ControllerDriver(brokers=4)
        self.deciding.create("t", 1, 2)
        self.elsewhere = sorted({1, 2, 3, 4}.difference(self.partition.replicas))

    @property
    def partition(self) -> Partition:
        return self.deciding.image.topics_by_name["t"].partitions[0]

    def move(
        self, replicas: list[int] | None, index: int = 0, topic: str = "t", **fields: bool
    ) -> int:
        named = wire.ReassignableTopic(topic, [wire.ReassignablePartition(index, replicas)])
        response = self.deciding.ask(wire.Request(topics=[named], **fields))
        return response.responses[0].partitions[0].error_code

    def listed(self, *indexes: int) -> list[list_wire.OngoingTopicReassignment]:
        topics = [list_wire.ListPartitionReassignmentsTopics("t", list(indexes))]
        return self.deciding.ask(list_wire.Request(topics=topics if indexes else None)).topics

    def in_sync(self, *nodes: int) -> None:
        """The leader proposes these as ISR."""
        now, epochs = self.partition, self.deciding.epochs
        part = alter_partition.RequestPartitionData(
            0, now.leader_epoch, [], [alter_partition.BrokerState(n, epochs[n]) for n in nodes],
            0, now.partition_epoch,
        )  # fmt: skip
        topic = alter_partition.RequestTopicData(self.deciding.image.topics_by_name["t"].id, [part])
        self.deciding.ask(alter_partition.Request(now.leader, epochs[now.leader], [topic]))


def test_a_reassignment_adds_then_removes_replicas() -> None:
    moving = Moving()
    before, target = moving.partition, moving.elsewhere
    assert moving.move(target) == 0
    assert moving.partition.replicas == (*target, *sorted(before.replicas))
    assert moving.partition.adding == tuple(target)
    assert moving.partition.leader == before.leader
    moving.in_sync(*before.isr, target[0])
    # Not all new replicas are in sync yet.
    assert moving.partition.removing == tuple(sorted(before.replicas))
    moving.in_sync(*moving.partition.isr, target[1])
    after = moving.partition
    assert (after.replicas, set(after.isr)) == (tuple(target), set(target))
    assert (after.adding, after.removing) == ((), ())
    assert after.leader == target[0]
    assert after.leader_epoch > before.leader_epoch


def test_the_new_replicas_know_their_directories() -> None:
    moving = Moving()
    moving.move(moving.elsewhere)
    for node in moving.elsewhere:
        assert moving.partition.directory_of(node) == bytes([node] * 16)  # type: ignore[arg-type]


def test_reordering_the_same_replicas_completes_at_once() -> None:
    moving = Moving()
    backwards = list(reversed(moving.partition.replicas))
    moving.move(backwards)
    assert moving.partition.replicas == tuple(backwards)
    assert moving.listed() == []


def test_removing_replicas_completes_at_once_if_one_in_sync_stays() -> None:
    moving = Moving()
    stays = moving.partition.replicas[1]
    moving.move([stays])
    assert (moving.partition.replicas, moving.partition.isr) == ((stays,), (stays,))
    assert moving.partition.leader == stays


def test_a_reassignment_is_listed_until_it_completes() -> None:
    moving = Moving()
    assert moving.listed() == []
    before = sorted(moving.partition.replicas)
    moving.move(moving.elsewhere)
    (topic,) = moving.listed()
    assert topic == list_wire.OngoingTopicReassignment(
        "t",
        [
            list_wire.OngoingPartitionReassignment(
                0, [*moving.elsewhere, *before], moving.elsewhere, before
            )
        ],
    )
    assert moving.listed(0) == [topic]
    assert moving.listed(1) == []


def test_a_reassignment_can_be_cancelled() -> None:
    moving = Moving()
    before = moving.partition
    assert moving.move(None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    moving.move(moving.elsewhere)
    moving.in_sync(*before.isr, moving.elsewhere[0])
    assert moving.move(None) == 0
    after = moving.partition
    assert set(after.replicas) == set(before.replicas)
    assert (after.isr, after.adding, after.removing) == (before.isr, (), ())
    assert after.leader == before.leader
    assert after.leader_epoch == before.leader_epoch + 1  # New replicas must stop fetching.


def test_a_cancellation_that_would_lose_records_is_refused() -> None:
    moving = Moving()
    moving.move(moving.elsewhere)
    new = moving.elsewhere[0]
    topic = moving.deciding.image.topics_by_name["t"].id
    moving.deciding.write(
        PartitionChangeRecord(partition_id=0, topic_id=topic, isr=[new], leader=new)
    )
    assert moving.move(None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_an_invalid_reassignment_is_refused() -> None:
    moving = Moving()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert moving.move([1, 2], topic="nope") == unknown
    assert moving.move([1, 2], index=7) == unknown
    for replicas in ([], [1, 1], [1, 99]):
        assert moving.move(replicas) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_change_of_the_replication_factor_can_be_disallowed() -> None:
    moving = Moving()
    refused = moving.move([1, 2, 3], allow_replication_factor_change=False)
    assert refused == ErrorCode.INVALID_REPLICATION_FACTOR
    assert moving.move(moving.elsewhere, allow_replication_factor_change=False) == 0
    assert moving.move(moving.elsewhere[:1], allow_replication_factor_change=False) == (
        ErrorCode.INVALID_REPLICATION_FACTOR
    )
    assert moving.move([1, 2, 3]) == 0
