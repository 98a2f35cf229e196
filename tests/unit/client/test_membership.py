"""A member of a group: joining, staying, leaving."""

from ottla.client.membership import Membership, share_by_ranges
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import join_group, sync_group
from tests.unit.client.fake_coordinator import world_with_groups


def test_it_joins_with_the_id_that_it_is_given_and_takes_its_partitions() -> None:
    world, coordinator = world_with_groups()
    world.broker.topics["t"] = 2

    async def work() -> None:
        member = Membership(world.cluster(), "g", ["t"])
        await member.join()
        assert (member.member_id, member.generation) == ("m1", 1)
        assert member.partitions == (TopicPartition("t", 0), TopicPartition("t", 1))
        assert await member.heartbeat()
        assert await member.commit({TopicPartition("t", 0): 5})
        assert coordinator.offsets["g"] == {TopicPartition("t", 0): 5}
        await member.leave()
        assert not coordinator.joined
        assert member.partitions == ()

    world.run(work)


def test_a_change_of_the_group_is_told_and_it_joins_again() -> None:
    world, coordinator = world_with_groups()

    async def work() -> None:
        member = Membership(world.cluster(), "g", ["t"])
        await member.join()
        coordinator.is_rebalancing = True
        assert not await member.heartbeat()
        await member.join()
        assert (member.member_id, member.generation) == ("m1", 2)
        coordinator.generation = 9
        assert not await member.commit({TopicPartition("t", 0): 5})

    world.run(work)


def test_a_member_that_was_given_up_begins_anew() -> None:
    world, coordinator = world_with_groups()

    async def work() -> None:
        member = Membership(world.cluster(), "g", ["t"])
        await member.join()
        coordinator.joined.clear()
        assert not await member.heartbeat()
        assert member.member_id == ""
        await member.join()
        assert coordinator.joined == {"m1"}

    world.run(work)


def test_a_sync_that_comes_too_late_joins_again() -> None:
    world, _ = world_with_groups()
    world.broker.script[ApiKey.SYNC_GROUP] = [
        sync_group.Response(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    ]

    async def work() -> None:
        member = Membership(world.cluster(), "g", ["t"])
        await member.join()
        assert member.generation == 2

    world.run(work)


def test_a_coordinator_that_moves_is_found_again() -> None:
    world, _ = world_with_groups()
    world.broker.script[ApiKey.JOIN_GROUP] = [
        join_group.Response(error_code=ErrorCode.NOT_COORDINATOR)
    ]

    async def work() -> None:
        member = Membership(world.cluster(), "g", ["t"])
        await member.join()
        assert world.broker.count(ApiKey.FIND_COORDINATOR) >= 2

    world.run(work)


def test_nobody_leaves_who_never_joined() -> None:
    world, _ = world_with_groups()

    async def work() -> None:
        await Membership(world.cluster(), "g", ["t"]).leave()
        assert world.broker.count(ApiKey.LEAVE_GROUP) == 0

    world.run(work)


def test_ranges_give_the_first_members_one_more() -> None:
    shares = share_by_ranges({"b": ["t"], "a": ["t", "u"], "c": ["u"]}, {"t": 3, "u": 1})
    assert shares["a"] == [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)]
    assert shares["b"] == [TopicPartition("t", 2)]
    assert shares["c"] == []
