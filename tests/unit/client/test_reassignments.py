"""Reassignments and elections as they go out, and what the answers become."""

import pytest

from ottla.client.reassignments import Election, Failures, Reassignments
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, TopicPartition
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.messages import alter_partition_reassignments as move_wire
from ottla.protocol.messages import elect_leaders as elect_wire
from tests.unit.client.fake_broker import World

FIRST, SECOND, THIRD = (TopicPartition("t", index) for index in range(3))


def moving_world(*codes: int) -> World:
    """Answers a move of t-0, t-1, ... with these codes."""
    world = World()
    key = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    world.broker.ranges[key] = request_class(key).VERSIONS
    results = [
        move_wire.ReassignablePartitionResponse(index, code, "no" if code else None)
        for index, code in enumerate(codes)
    ]
    topic = move_wire.ReassignableTopicResponse("t", results)
    world.broker.always[key] = lambda request, version: move_wire.Response(responses=[topic])
    return world


def test_a_move_names_its_replicas_and_a_cancellation_none() -> None:
    world = moving_world(0, 0)

    async def work() -> None:
        await Reassignments(world.cluster()).start({FIRST: [NodeId(2), NodeId(3)], SECOND: None})
        (topic,) = world.broker.requests[-1][2].topics
        assert [(p.partition_index, p.replicas) for p in topic.partitions] == [
            (0, [2, 3]),
            (1, None),
        ]

    world.run(work)


def test_refused_moves_are_named_and_a_missing_one_needs_no_cancellation() -> None:
    world = moving_world(
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    )

    async def work() -> None:
        with pytest.raises(Failures, match=r"t-1: no \(and 1 more of 3\)") as caught:
            await Reassignments(world.cluster()).start({FIRST: None, SECOND: None, THIRD: None})
        assert list(caught.value.by_partition) == [SECOND, THIRD]
        assert not caught.value.is_retriable

    world.run(work)


def test_an_election_returns_changed_and_refused_partitions() -> None:
    world = World()
    key = ApiKey.ELECT_LEADERS
    world.broker.ranges[key] = request_class(key).VERSIONS
    codes = (0, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    results = [elect_wire.PartitionResult(index, code) for index, code in enumerate(codes)]
    result = elect_wire.ReplicaElectionResult("t", results)
    world.broker.always[key] = lambda request, version: elect_wire.Response(
        replica_election_results=[result]
    )

    async def work() -> None:
        elected, refused = await Reassignments(world.cluster()).elect(Election.PREFERRED, None)
        assert world.broker.requests[-1][2].topic_partitions is None
        assert elected == [FIRST]
        assert list(refused) == [THIRD]

    world.run(work)
