"""CreatePartitions through a broker: what is confirmed can be written to."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import create_partitions as wire
from tests.unit.broker.requests import write
from tests.unit.broker.serving import World, serving


def grow(world: World, count: int, version: int = 3, name: str = "t", **options: bool) -> int:
    topic = wire.CreatePartitionsTopic(name, count, None)
    request = wire.Request([topic], timeout_ms=1000, **options)
    [result] = world.client().ask(request, version).results
    assert result.name == name
    return result.error_code


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_in_every_version(version: int) -> None:
    with serving() as world:
        world.topic("t", 1)
        write(world, b"a")
        assert grow(world, 3, version) == 0
        assert write(world, b"b", partition=2) == 0
        assert write(world, b"b", partition=0) == 1


@pytest.mark.parametrize("count", [0, 1, 2, -1])
def test_partitions_are_never_taken_away(count: int) -> None:
    with serving() as world:
        world.topic("t", 2)
        assert grow(world, count) == ErrorCode.INVALID_PARTITIONS
        assert len(world.broker.partitions) == 2


def test_unknown_topics_are_refused_and_validating_changes_nothing() -> None:
    with serving() as world:
        world.topic("t", 1)
        assert grow(world, 3, name="nobody") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert grow(world, 3, validate_only=True) == 0
        assert len(world.broker.partitions) == 1


def test_new_partitions_survive_a_power_cut() -> None:
    with serving() as world:
        world.topic("t", 1)
        assert grow(world, 4) == 0
        world.lose_power()
        assert len(world.broker.partitions) == 4
        assert write(world, b"a", partition=3) == 0
