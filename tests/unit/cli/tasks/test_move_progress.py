"""Waiting for moves, and how much of them is copied."""

import pytest

from ottla.cli.tasks.move_progress import Copied, copied_by, total, wait_moved
from ottla.client.brokers import Move
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from tests.unit.cli.cluster_world import ClusterWorld

PLACE = TopicPartition("t", 0)


def test_waiting_ends_when_the_moves_are_over(capsys: pytest.CaptureFixture[str]) -> None:
    world = ClusterWorld()
    listed = world.broker.always[ApiKey.LIST_PARTITION_REASSIGNMENTS]

    def step(request: object, version: int) -> object:
        if world.broker.count(ApiKey.LIST_PARTITION_REASSIGNMENTS) > 2:
            world.moves = []
        return listed(request, version)

    world.broker.always[ApiKey.LIST_PARTITION_REASSIGNMENTS] = step
    world.run(lambda: wait_moved(world.cluster(), [PLACE]))
    told = capsys.readouterr().err.splitlines()
    assert told == [
        "0 of 1 partitions moved, 0 B of 1.5 KiB copied of the others",
        "1 of 1 partitions moved",
    ]


def test_moves_of_other_partitions_are_not_waited_for() -> None:
    world = ClusterWorld()
    world.run(lambda: wait_moved(world.cluster(), [TopicPartition("t", 1)]))
    assert world.broker.count(ApiKey.LIST_PARTITION_REASSIGNMENTS) == 1


def test_new_replicas_are_measured_by_the_largest_old_one() -> None:
    """Both running brokers report 1,500 bytes; broker 4 does not run."""
    world = ClusterWorld()

    async def work() -> None:
        moves = [Move("t", 0, [1, 2, 4], [2, 4], [])]
        copied = await copied_by(world.cluster(), moves)
        assert copied == {PLACE: Copied(1500, 3000)}
        assert total([*copied.values(), Copied(1, 2)]) == Copied(1501, 3002)

    world.run(work)
