import pytest

from ottla.metadata.decisions.partition_assignment import (
    NewPartitions,
    assigned,
    check_assignment,
    partition_records,
)
from ottla.metadata.image.cluster import UNASSIGNED_DIRECTORY
from ottla.model.errors import ErrorCode, Refusal
from tests.unit.metadata.controller_driver import ControllerDriver


def test_a_fenced_replica_is_not_in_sync_at_first() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.heartbeat(2, want_fence=True)
    partition = assigned(deciding.image, 0, [2, 1])
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 1), (1,), 1)


def test_a_partition_without_an_active_replica_is_refused() -> None:
    deciding = ControllerDriver(brokers=2)
    deciding.heartbeat(2, want_fence=True)
    with pytest.raises(Refusal) as refused:
        assigned(deciding.image, 4, [2])
    assert refused.value.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "partition 4 are fenced or in controlled shutdown" in (refused.value.message or "")


def test_a_broker_with_several_disks_says_later_where_the_replica_lies() -> None:
    deciding = ControllerDriver(brokers=0)
    deciding.register(1, log_dirs=[b"a" * 16, b"b" * 16])
    deciding.heartbeat(1)
    assert NewPartitions(deciding.context).place(1, 1)[0].directories == (UNASSIGNED_DIRECTORY,)


def test_records_are_numbered_from_the_first_index() -> None:
    deciding = ControllerDriver()
    partitions = NewPartitions(deciding.context).place(2, 1)
    written = partition_records(deciding.image, b"t" * 16, partitions, first_index=3)
    assert [record.partition_id for record in written] == [3, 4]


def test_an_assignment_has_to_be_as_wide_as_the_others() -> None:
    deciding = ControllerDriver(brokers=2)
    check_assignment(deciding.image, [1, 2], 2)
    with pytest.raises(Refusal, match="INVALID_REPLICA_ASSIGNMENT"):
        check_assignment(deciding.image, [1], 2)
