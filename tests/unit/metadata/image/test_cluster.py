from ottla.metadata.image.cluster import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    Broker,
    Partition,
    Topic,
)
from ottla.model.types import NodeId

ONE, TWO = NodeId(1), NodeId(2)
DISK, OTHER_DISK = b"d" * 16, b"e" * 16


def broker(*directories: bytes) -> Broker:
    return Broker(ONE, 5, b"i" * 16, {}, {}, directories=directories)


def test_a_broker_with_one_disk_gets_its_replicas_there() -> None:
    assert broker(DISK).default_directory == DISK


def test_a_broker_with_several_disks_chooses_by_itself() -> None:
    assert broker(DISK, OTHER_DISK).default_directory == UNASSIGNED_DIRECTORY


def test_a_broker_without_directory_ids_is_of_an_older_release() -> None:
    assert broker().default_directory == MIGRATING_DIRECTORY


def test_a_partition_knows_the_directory_of_each_replica() -> None:
    partition = Partition(ONE, 0, 0, (ONE, TWO), (ONE,), directories=(DISK, OTHER_DISK))
    assert partition.directory_of(TWO) == OTHER_DISK
    assert partition.directory_of(NodeId(9)) == UNASSIGNED_DIRECTORY


def test_only_kafkas_own_topics_are_internal() -> None:
    assert Topic("__consumer_offsets", DISK, {}).is_internal
    assert not Topic("__mine", DISK, {}).is_internal


def test_a_replica_on_a_lost_disk_is_offline() -> None:
    def on(directory: bytes) -> bool:
        partition = Partition(ONE, 0, 0, (ONE,), (ONE,), directories=(directory,))
        return broker(DISK).has_disk_of(partition)

    assert on(DISK)
    assert not on(OTHER_DISK)
    assert not on(LOST_DIRECTORY)
    assert on(UNASSIGNED_DIRECTORY)  # Nobody has said where it is.
    assert on(MIGRATING_DIRECTORY)
