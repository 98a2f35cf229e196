"""Where partitions begin and end."""

import pytest

from ottla.client.cluster import ClientSettings
from ottla.client.errors import Refused
from ottla.client.offsets import EARLIEST, LATEST, FoundOffset, find_offsets
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import list_offsets as wire
from tests.unit.client.fake_broker import World

PLACE = TopicPartition("t", 0)


def refuse(request: wire.Request, version: int) -> wire.Response:
    result = wire.ListOffsetsPartitionResponse(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return wire.Response(topics=[wire.ListOffsetsTopicResponse("t", [result])])


def test_each_leader_is_asked_for_its_own_partitions() -> None:
    world = World()
    world.broker.topics["t"] = 3

    async def work() -> None:
        other = world.add_broker(2)
        await other.start()
        world.broker.leaders["t", 1] = 2
        world.broker.end["t", 0], other.end["t", 1], world.broker.end["t", 2] = 5, 6, 7
        places = [TopicPartition("t", index) for index in range(3)]
        cluster = world.cluster()
        found = await find_offsets(cluster, dict.fromkeys(places, LATEST))
        assert [found[place].offset for place in places] == [5, 6, 7]
        assert (world.broker.count(ApiKey.LIST_OFFSETS), other.count(ApiKey.LIST_OFFSETS)) == (1, 1)
        assert await find_offsets(cluster, {PLACE: EARLIEST}) == {PLACE: FoundOffset(0, -1)}

    world.run(work)


def test_a_leader_that_has_moved_is_looked_up_again() -> None:
    world = World()

    async def work() -> None:
        world.broker.script[ApiKey.LIST_OFFSETS] = [refuse]
        world.broker.end["t", 0] = 3
        found = await find_offsets(world.cluster(), {PLACE: LATEST})
        assert found[PLACE].offset == 3
        assert world.broker.count(ApiKey.METADATA) == 2

    world.run(work)


def test_a_refusal_that_stays_is_told() -> None:
    world = World()

    async def work() -> None:
        world.broker.always[ApiKey.LIST_OFFSETS] = refuse
        cluster = world.cluster(settings=ClientSettings(deadline_ms=3000))
        with pytest.raises(Refused, match="t-0: the partition's leader has moved"):
            await find_offsets(cluster, {PLACE: LATEST})

    world.run(work)
