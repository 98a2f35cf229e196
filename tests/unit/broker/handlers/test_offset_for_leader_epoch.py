"""OffsetForLeaderEpoch: where each leader's part of a log ends."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import offset_for_leader_epoch as wire
from tests.unit.broker.requests import only, write
from tests.unit.broker.serving import World, serving


def end_of(
    world: World,
    epoch: int,
    current: int = -1,
    version: int = 4,
    topic: str = "t",
    partition: int = 0,
) -> tuple[int, int, int]:
    part = wire.OffsetForLeaderPartition(partition, current, epoch)
    request = wire.Request(topics=[wire.OffsetForLeaderTopic(topic, [part])])
    found = only(world.client().ask(request, version))
    assert found.partition == partition
    return found.error_code, found.leader_epoch, found.end_offset


@pytest.mark.parametrize("version", range(2, 5))
def test_an_epoch_ends_where_the_next_begins(version: int) -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        world.restart()
        write(world, b"c")
        epoch = world.partition().leader_epoch
        assert end_of(world, 0, version=version) == (0, 0, 2)
        assert end_of(world, epoch, version=version) == (0, epoch, 3)
        assert end_of(world, epoch + 1, version=version) == (0, -1, -1)
        assert end_of(world, -1, version=version) == (0, -1, -1)


def test_an_epoch_without_records_ends_where_the_one_before_it_ended() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a")
        world.restart()
        world.restart()
        write(world, b"b")
        between = world.partition().leader_epoch - 1
        assert end_of(world, between) == (0, 0, 1)


def test_another_leader_epoch_than_ours_is_told() -> None:
    with serving() as world:
        world.topic()
        world.restart()
        epoch = world.partition().leader_epoch
        assert end_of(world, 0, current=epoch)[0] == 0
        assert end_of(world, 0, current=epoch - 1) == (ErrorCode.FENCED_LEADER_EPOCH, -1, -1)
        assert end_of(world, 0, current=epoch + 1) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


def test_unknown_partitions_are_refused() -> None:
    with serving() as world:
        world.topic()
        unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
        assert end_of(world, 0, partition=3) == unknown
        assert end_of(world, 0, topic="nobody") == unknown
