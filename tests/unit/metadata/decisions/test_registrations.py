from ottla.metadata.image.cluster import LOST_DIRECTORY, TOPIC_RESOURCE, Endpoint
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import assign_replicas_to_dirs as dirs
from ottla.protocol.messages import controller_registration
from ottla.protocol.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
)
from tests.unit.metadata.controller_driver import ControllerDriver

DISK = b"\1" * 16  # The directory of broker 1.
OTHER_DISK = b"o" * 16


def test_a_controller_is_known_by_its_registration() -> None:
    deciding = ControllerDriver()
    request = controller_registration.Request(
        1,
        b"i" * 16,
        False,
        [controller_registration.Listener("CONTROLLER", "h", 9093, 0)],
        [controller_registration.Feature("metadata.version", 7, 30)],
    )
    assert deciding.ask(request).error_code == 0
    controller = deciding.image.controllers[NodeId(1)]
    assert controller.endpoints == {"CONTROLLER": Endpoint("h", 9093, 0)}


def test_an_old_cluster_has_no_such_registrations() -> None:
    deciding = ControllerDriver()
    deciding.write(FeatureLevelRecord("metadata.version", 14))
    assert deciding.ask(controller_registration.Request()).code == ErrorCode.UNSUPPORTED_VERSION


def assignment(
    deciding: ControllerDriver, topic_id: bytes, *indexes: int, disk: bytes = DISK
) -> dirs.Request:
    partitions = [dirs.RequestPartitionData(index) for index in indexes]
    return dirs.Request(
        1,
        deciding.epochs[1],
        [dirs.RequestDirectoryData(disk, [dirs.RequestTopicData(topic_id, partitions)])],
    )


def codes(response: dirs.Response) -> list[int]:
    return [p.error_code for d in response.directories for t in d.topics for p in t.partitions]


def test_a_broker_reports_the_directory_of_a_replica() -> None:
    deciding = ControllerDriver(brokers=0)
    deciding.register(1, log_dirs=[DISK, OTHER_DISK])
    deciding.heartbeat(1)
    deciding.create("t", 2)
    topic = deciding.image.topics_by_name["t"].id
    assert codes(deciding.ask(assignment(deciding, topic, 0, 7))) == [
        0,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert partition.directory_of(NodeId(1)) == DISK
    assert partition.leader_epoch == 0
    again, written = deciding.decide(assignment(deciding, topic, 0))
    assert codes(again) == [0]
    assert written == []


def test_an_unknown_replica_is_refused() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 2)
    topic = deciding.image.topics_by_name["t"]
    elsewhere = next(i for i, p in topic.partitions.items() if 1 not in p.replicas)
    assert codes(deciding.ask(assignment(deciding, topic.id, elsewhere))) == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER
    ]
    assert codes(deciding.ask(assignment(deciding, b"x" * 16, 0))) == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_replica_in_a_lost_directory_leaves_its_isr() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.create("t", 1, 2)
    topic = deciding.image.topics_by_name["t"].id
    deciding.ask(assignment(deciding, topic, 0, disk=b"x" * 16))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert partition.directory_of(NodeId(1)) == b"x" * 16
    assert (partition.leader, partition.isr) == (2, (2,))


def test_a_lost_replica_stays_eligible_without_contact_of_other_in_sync_replicas() -> None:
    """The others may have lost power: then its records are waited for."""
    deciding = ControllerDriver(brokers=3, features={"eligible.leader.replicas.version": 1})
    deciding.create("t", 1, 3, min_insync_replicas="3")
    topic = deciding.image.topics_by_name["t"].id
    deciding.heartbeat(1, want_fence=True)
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert partition.elr == (1,)
    deciding.fail_over()
    deciding.ask(assignment(deciding, topic, 0, disk=b"x" * 16))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert partition.directory_of(NodeId(1)) == b"x" * 16
    assert (set(partition.isr), partition.elr) == ({2, 3}, (1,))
    deciding.heartbeat(2)
    deciding.ask(assignment(deciding, topic, 0, disk=b"x" * 16))
    assert deciding.image.topics_by_name["t"].partitions[0].elr == ()


def alone_in_sync() -> tuple[ControllerDriver, bytes]:
    """Broker 1 leads, broker 2 is eligible; the minimum is two."""
    deciding = ControllerDriver(brokers=3)
    deciding.write(FeatureLevelRecord("eligible.leader.replicas.version", 1))
    deciding.create("t", 1, 3)
    topic = deciding.image.topics_by_name["t"].id
    deciding.write(ConfigRecord(TOPIC_RESOURCE, "t", "min.insync.replicas", "2"))
    change = PartitionChangeRecord(partition_id=0, topic_id=topic, leader=1, isr=[1])
    change.eligible_leader_replicas = [2]
    deciding.write(change)
    return deciding, topic


def test_an_eligible_replica_leads_when_the_last_one_in_sync_is_lost() -> None:
    deciding, topic = alone_in_sync()
    deciding.ask(assignment(deciding, topic, 0, disk=LOST_DIRECTORY))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), ())


def test_a_lost_replica_is_waited_for_while_the_eligible_one_is_gone() -> None:
    deciding, topic = alone_in_sync()
    deciding.write(BrokerRegistrationChangeRecord(2, deciding.epochs[2], fenced=1))
    deciding.ask(assignment(deciding, topic, 0, disk=LOST_DIRECTORY))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (-1, (), (1, 2))
    deciding.heartbeat(2)  # It returns and leads; the lost replica is reported again.
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), (1,))
    deciding.ask(assignment(deciding, topic, 0, disk=LOST_DIRECTORY))
    partition = deciding.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), ())
