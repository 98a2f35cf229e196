"""Drain and unregister: waiting, refusals, messages."""

import json

import pytest

from ottla.cli.tasks.drain import NotPossible, drain_broker, undrain_broker
from ottla.cli.tasks.drain import unregister_broker as forget
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.messages import (
    incremental_alter_configs,
    list_partition_reassignments,
    unregister_broker,
)
from tests.unit.cli.cluster_world import ClusterWorld


def world_that_moves() -> ClusterWorld:
    """Draining starts a move at once; each poll finds one replica less on broker 3."""
    world = ClusterWorld()
    world.moves = []
    world.replicas = {0: [3], 1: [3], 2: [1]}
    world.isr = {0: [3], 1: [3], 2: [1]}

    def drain(
        request: incremental_alter_configs.Request, version: int
    ) -> incremental_alter_configs.Response:
        return incremental_alter_configs.Response(
            responses=[incremental_alter_configs.AlterConfigsResourceResponse()]
        )

    world.broker.always[ApiKey.INCREMENTAL_ALTER_CONFIGS] = drain
    key = ApiKey.UNREGISTER_BROKER
    world.broker.ranges[key] = request_class(key).VERSIONS
    world.broker.always[key] = lambda request, version: unregister_broker.Response()
    return world


def moving_on(world: ClusterWorld) -> None:
    listed = world.broker.always[ApiKey.LIST_PARTITION_REASSIGNMENTS]

    def step(request: object, version: int) -> object:
        if world.broker.count(ApiKey.INCREMENTAL_ALTER_CONFIGS):
            for index, nodes in world.replicas.items():
                if nodes == [3]:
                    world.replicas[index] = [2]
                    break
        return listed(request, version)

    world.broker.always[ApiKey.LIST_PARTITION_REASSIGNMENTS] = step


def test_waiting_shows_progress_and_ends_when_nothing_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = world_that_moves()
    moving_on(world)
    world.run(lambda: drain_broker(world.cluster(), 3, wait=True, as_json=False))
    told = capsys.readouterr()
    assert "1 of 2 replicas moved" in told.err
    assert told.out == "Broker 3 is drained: nothing is left on it.\n"


def test_without_waiting_it_ends_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    world = world_that_moves()
    world.run(lambda: drain_broker(world.cluster(), 3, wait=False, as_json=True))
    assert json.loads(capsys.readouterr().out) == {"broker": 3, "drained": True, "replicas": 2}


def test_replicas_without_another_place_are_reported_and_not_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = world_that_moves()
    world.replicas = {0: [1, 2, 3]}
    world.isr = {0: [1, 2, 3]}

    async def work() -> None:
        with pytest.raises(NotPossible, match="1 replica cannot leave broker 3"):
            await drain_broker(world.cluster(), 3, wait=True, as_json=False)

    world.run(work)
    assert "they stay until one is added" in capsys.readouterr().err


@pytest.mark.parametrize("began_before", [False, True])
def test_a_moving_partition_counts_as_placed(began_before: bool) -> None:
    """It has its new replica beside the old ones."""
    world = world_that_moves()
    before, during, after = ([1, 3], [1, 2, 3], [1, 2])
    ongoing = list_partition_reassignments.OngoingPartitionReassignment(0, during, [2], [3])
    world.replicas, world.isr = {0: during if began_before else before}, {0: [1]}
    world.moves = [ongoing] if began_before else []
    listed = world.broker.always[ApiKey.LIST_PARTITION_REASSIGNMENTS]

    def step(request: object, version: int) -> object:
        if world.broker.count(ApiKey.INCREMENTAL_ALTER_CONFIGS):
            is_done = world.replicas[0] in (during, after)
            world.replicas[0] = after if is_done else during
            world.moves = [] if is_done else [ongoing]
        return listed(request, version)

    world.broker.always[ApiKey.LIST_PARTITION_REASSIGNMENTS] = step
    world.run(lambda: drain_broker(world.cluster(), 3, wait=True, as_json=False))
    assert world.replicas[0] == after


def test_drain_stops_waiting_when_no_move_starts() -> None:
    world = world_that_moves()

    async def work() -> None:
        with pytest.raises(NotPossible, match="2 replicas cannot leave"):
            await drain_broker(world.cluster(), 3, wait=True, as_json=False)

    world.run(work)


def test_an_unreachable_broker_is_named() -> None:
    world = world_that_moves()

    async def work() -> None:
        with pytest.raises(NotPossible, match="no broker 9: those registered are 1, 2, 3"):
            await drain_broker(world.cluster(), 9, wait=False, as_json=False)

    world.run(work)
    assert not world.broker.count(ApiKey.INCREMENTAL_ALTER_CONFIGS)


def test_undrain_allows_replicas_again(capsys: pytest.CaptureFixture[str]) -> None:
    world = world_that_moves()
    world.run(lambda: undrain_broker(world.cluster(), 3, as_json=False))
    assert capsys.readouterr().out == "Broker 3 may have replicas again.\n"


def test_only_a_stopped_and_empty_broker_is_unregistered() -> None:
    world = world_that_moves()

    async def work() -> None:
        cluster = world.cluster()
        with pytest.raises(NotPossible, match="broker 1 is running"):
            await forget(cluster, 1, force=True, as_json=False)
        with pytest.raises(NotPossible, match="2 partitions have a replica on broker 3"):
            await forget(cluster, 3, force=False, as_json=False)
        assert not world.broker.count(ApiKey.UNREGISTER_BROKER)
        await forget(cluster, 3, force=True, as_json=False)
        assert world.broker.requests[-1][2].broker_id == 3

    world.run(work)
