"""AlterPartitionReassignments through a broker."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import alter_partition_reassignments as wire
from tests.unit.broker.serving import World, serving


def move(world: World, replicas: list[int] | None, version: int = 1) -> int:
    topic = wire.ReassignableTopic("t", [wire.ReassignablePartition(0, replicas)])
    answer = world.client().ask(wire.Request(topics=[topic]), version)
    return answer.responses[0].partitions[0].error_code


@pytest.mark.parametrize("version", range(2))
def test_a_partition_stays_where_it_is(version: int) -> None:
    with serving() as world:
        world.topic()
        assert move(world, [world.broker.node_id], version) == 0
        assert move(world, [77], version) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert move(world, None, version) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
