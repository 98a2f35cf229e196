"""Requests about brokers as they go out, and what their answers become."""

import pytest

from ottla.client.brokers import Brokers, CannotDrain, Move
from ottla.client.errors import Refused
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.messages import (
    describe_configs,
    incremental_alter_configs,
    list_partition_reassignments,
    unregister_broker,
)
from tests.unit.client.fake_broker import World


def world_with(**flags: str) -> World:
    """A broker with these configs; a cluster that is no Ottla has none of them."""
    world = World()
    for key in (ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.UNREGISTER_BROKER):
        world.broker.ranges[key] = request_class(key).VERSIONS
    known = {f"ottla.{name.replace('_', '.')}": value for name, value in flags.items()}

    def describe(request: describe_configs.Request, version: int) -> describe_configs.Response:
        (resource,) = request.resources
        found = [
            describe_configs.DescribeConfigsResourceResult(name, known[name])
            for name in resource.configuration_keys or ()
            if name in known
        ]
        return describe_configs.Response(0, [describe_configs.DescribeConfigsResult(configs=found)])

    world.broker.always[ApiKey.DESCRIBE_CONFIGS] = describe
    world.broker.always[ApiKey.INCREMENTAL_ALTER_CONFIGS] = lambda request, version: (
        incremental_alter_configs.Response(
            responses=[incremental_alter_configs.AlterConfigsResourceResponse()]
        )
    )
    return world


def test_moves_come_in_order() -> None:
    world = world_with()
    ongoing = list_partition_reassignments.OngoingPartitionReassignment
    world.broker.always[ApiKey.LIST_PARTITION_REASSIGNMENTS] = lambda request, version: (
        list_partition_reassignments.Response(
            topics=[
                list_partition_reassignments.OngoingTopicReassignment(
                    name, [ongoing(1, [1, 2], [2], [1]), ongoing(0, [2, 1], [2], [1])]
                )
                for name in ("u", "t")
            ]
        )
    )

    async def work() -> None:
        moves = await Brokers(world.cluster()).moves()
        assert moves[0] == Move("t", 0, [2, 1], [2], [1])
        assert [(move.topic, move.partition) for move in moves] == [
            ("t", 0),
            ("t", 1),
            ("u", 0),
            ("u", 1),
        ]

    world.run(work)


def test_a_broker_that_is_not_known_cannot_be_forgotten() -> None:
    world = world_with()
    world.broker.always[ApiKey.UNREGISTER_BROKER] = lambda request, version: (
        unregister_broker.Response(
            error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=f"{request.broker_id}?"
        )
    )

    async def work() -> None:
        with pytest.raises(Refused, match=r"9\?"):
            await Brokers(world.cluster()).unregister(NodeId(9))

    world.run(work)


@pytest.mark.parametrize(("drained", "sent"), [(True, (0, "true")), (False, (1, None))])
def test_draining_is_a_config_that_any_broker_passes_on(
    drained: bool, sent: tuple[int, str | None]
) -> None:
    world = world_with(rebalance_enable="true")

    async def work() -> None:
        await Brokers(world.cluster()).set_drained(NodeId(3), drained)
        (resource,) = world.broker.requests[-1][2].resources
        assert (resource.resource_type, resource.resource_name) == (4, "3")
        (config,) = resource.configs
        assert config.name == "ottla.drained"
        assert (config.config_operation, config.value) == sent

    world.run(work)


def test_where_nothing_would_move_nothing_is_promised() -> None:
    async def drain(world: World, words: str) -> None:
        with pytest.raises(CannotDrain, match=words):
            await Brokers(world.cluster()).set_drained(NodeId(3), True)
        assert not world.broker.count(ApiKey.INCREMENTAL_ALTER_CONFIGS)

    kafka, switched_off = world_with(), world_with(rebalance_enable="false")
    kafka.run(lambda: drain(kafka, "no Ottla"))
    switched_off.run(lambda: drain(switched_off, "is false"))


def test_whether_a_broker_is_drained_is_told_or_is_not_known() -> None:
    async def ask(world: World, expected: bool | None) -> None:
        assert await Brokers(world.cluster()).is_drained(NodeId(1)) is expected

    worlds = [(world_with(drained="true"), True), (world_with(drained="false"), False)]
    for world, expected in [*worlds, (world_with(), None)]:
        world.run(lambda world=world, expected=expected: ask(world, expected))  # type: ignore[misc]
