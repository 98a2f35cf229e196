import pytest

from ottla.metadata.image.cluster import Partition
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import alter_partition as wire
from ottla.protocol.messages import alter_partition_reassignments, assign_replicas_to_dirs
from tests.unit.metadata.controller_driver import ControllerDriver

REPLICAS = (1, 2, 3)


class Altering:
    """Three brokers, and a partition of which only the leader is in sync."""

    def __init__(self, features: dict[str, int] | None = None) -> None:
        self.deciding = ControllerDriver(brokers=4, features=features)
        self.deciding.create("t", 1, 3, min_insync_replicas="2")
        others = [node for node in self.partition.replicas if node != self.partition.leader]
        for node in others:
            self.deciding.heartbeat(node, want_fence=True)
            self.deciding.heartbeat(node)

    @property
    def partition(self) -> Partition:
        return self.deciding.image.topics_by_name["t"].partitions[0]

    @property
    def joined(self) -> list[int]:
        return [
            self.partition.leader,
            *(n for n in self.partition.replicas if n not in self.partition.isr),
        ]

    def request(self, isr: list[int], **change: object) -> wire.Request:
        states = [wire.BrokerState(node, self.deciding.epochs.get(node, -1)) for node in isr]
        part = wire.RequestPartitionData(
            0, self.partition.leader_epoch, [], states, 0, self.partition.partition_epoch
        )
        for name, value in change.items():
            setattr(part, name, value)
        leader = self.partition.leader
        topic = wire.RequestTopicData(self.deciding.image.topics_by_name["t"].id, [part])
        return wire.Request(leader, self.deciding.epochs[leader], [topic])

    def alter(self, isr: list[int], **change: object) -> wire.ResponsePartitionData:
        return self.deciding.ask(self.request(isr, **change)).topics[0].partitions[0]


def test_alter_partition_counts_as_contact_of_the_leader() -> None:
    altering = Altering()
    altering.alter(altering.joined)
    leader = altering.partition.leader
    altering.deciding.fail_over()
    assert altering.alter([leader]).error_code == 0
    assert altering.partition.isr == (leader,)


def test_a_leader_lets_replicas_join() -> None:
    altering = Altering()
    before = altering.partition
    answer = altering.alter(altering.joined)
    assert sorted(altering.partition.isr) == sorted(before.replicas)
    assert answer == wire.ResponsePartitionData(
        0, 0, before.leader, before.leader_epoch, list(altering.partition.isr), 0,
        before.partition_epoch + 1,
    )  # fmt: skip
    assert altering.partition.leader_epoch == before.leader_epoch


def test_isr_of_one_below_the_minimum_has_an_elr() -> None:
    altering = Altering({"eligible.leader.replicas.version": 1})
    altering.alter(altering.joined)
    leader = altering.partition.leader
    altering.alter([leader])
    assert altering.partition.isr == (leader,)
    assert set(altering.partition.elr) == set(altering.partition.replicas) - {leader}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"leader_epoch": 99}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 99}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 0}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"partition_index": 7}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_recovery_state": 1}, ErrorCode.INVALID_REQUEST),
        ({"leader_recovery_state": 7}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_proposal_with_stale_epochs_is_refused(change: dict[str, object], code: ErrorCode) -> None:
    altering = Altering()
    before = altering.partition
    assert altering.alter([before.leader], **change).error_code == code
    assert altering.partition == before


def test_isr_must_be_distinct_replicas_with_the_leader() -> None:
    altering = Altering()
    leader = altering.partition.leader
    (stranger,) = {1, 2, 3, 4}.difference(altering.partition.replicas)
    for isr in ([leader, stranger], [leader, leader], altering.joined[1:]):
        assert altering.alter(isr).error_code == ErrorCode.INVALID_REQUEST


def test_only_the_leader_may_ask() -> None:
    altering = Altering()
    request = altering.request([altering.partition.leader])
    other = altering.joined[1]
    request.broker_id, request.broker_epoch = other, altering.deciding.epochs[other]
    answer = altering.deciding.ask(request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    request.broker_epoch -= 1
    assert altering.deciding.ask(request).code == ErrorCode.STALE_BROKER_EPOCH


def test_a_replica_of_another_incarnation_does_not_join() -> None:
    altering = Altering()
    request = altering.request(altering.joined)
    state = request.topics[0].partitions[0].new_isr_with_epochs[1]
    state.broker_epoch -= 1
    answer = altering.deciding.ask(request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INELIGIBLE_REPLICA
    state.broker_epoch = -1  # A leader of an old release cannot say which one it means.
    assert altering.deciding.ask(request).topics[0].partitions[0].error_code == 0


def test_a_fenced_or_stopping_replica_does_not_join() -> None:
    altering = Altering()
    node = altering.joined[1]
    altering.deciding.heartbeat(node, want_fence=True)
    assert altering.alter(altering.joined).error_code == ErrorCode.INELIGIBLE_REPLICA


def test_old_leaders_name_no_epochs() -> None:
    altering = Altering()
    joined = altering.joined
    answer = altering.alter([], new_isr=joined)
    assert answer.error_code == 0
    assert altering.partition.isr == tuple(joined)


def test_an_unknown_topic_is_refused() -> None:
    altering = Altering()
    request = altering.request([1])
    request.topics[0].topic_id = b"?" * 16
    answer = altering.deciding.ask(request)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_leader_whose_move_ends_learns_that_another_leads() -> None:
    altering = Altering()
    altering.alter(altering.joined)
    leader = altering.partition.leader
    (stranger,) = {1, 2, 3, 4}.difference(altering.partition.replicas)
    rest = [node for node in altering.partition.replicas if node != leader]
    part = alter_partition_reassignments.ReassignablePartition(0, [stranger, *rest])
    topic = alter_partition_reassignments.ReassignableTopic("t", [part])
    altering.deciding.ask(alter_partition_reassignments.Request(topics=[topic]))
    answer = altering.alter([*altering.partition.isr, stranger])
    assert answer.error_code == ErrorCode.NEW_LEADER_ELECTED
    assert altering.partition.replicas == (stranger, *map(NodeId, rest))
    assert altering.partition.leader == stranger


def test_a_replica_whose_disk_is_lost_does_not_join() -> None:
    altering = Altering()
    deciding, before = altering.deciding, altering.partition
    victim = next(node for node in before.replicas if node != before.leader)
    lost = assign_replicas_to_dirs.RequestDirectoryData(
        b"x" * 16,
        [
            assign_replicas_to_dirs.RequestTopicData(
                deciding.image.topics_by_name["t"].id,
                [assign_replicas_to_dirs.RequestPartitionData(0)],
            )
        ],
    )
    deciding.ask(assign_replicas_to_dirs.Request(victim, deciding.epochs[victim], [lost]))
    assert not deciding.image.brokers[victim].has_disk_of(altering.partition)
    answer = altering.alter(altering.joined)
    assert answer.error_code == ErrorCode.INELIGIBLE_REPLICA
    assert altering.partition.isr == (before.leader,)
