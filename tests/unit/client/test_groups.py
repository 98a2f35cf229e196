"""Group requests as they go out, and what their answers become."""

from typing import Any

import pytest

from ottla.client.errors import NotServed, Refused
from ottla.client.groups import CLASSIC, CONSUMER, Committed, Groups, Listed, UnknownGroup
from ottla.client.metadata import UnknownTopic
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    encode_versioned,
)
from ottla.protocol.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    find_coordinator,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from tests.unit.client import fake_coordinator
from tests.unit.client.fake_broker import World


def world_with_groups() -> World:
    return fake_coordinator.world_with_groups()[0]


def last(world: World) -> Any:  # noqa: ANN401
    return world.broker.requests[-1][2]


@pytest.mark.parametrize("versions", [range(0, 4), range(0, 7)])
def test_the_coordinator_is_asked_for_in_the_way_of_each_version(versions: range) -> None:
    world = world_with_groups()
    world.broker.ranges[ApiKey.FIND_COORDINATOR] = versions

    async def work() -> None:
        assert await Groups(world.cluster()).coordinator("g") == 1

    world.run(work)


def test_a_coordinator_that_is_not_there_yet_is_asked_for_again() -> None:
    world = world_with_groups()
    world.broker.script[ApiKey.FIND_COORDINATOR] = [
        lambda request, version: find_coordinator.Response(
            coordinators=[
                find_coordinator.Coordinator(
                    "g", -1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE
                )
            ]
        )
    ]

    async def work() -> None:
        assert await Groups(world.cluster()).coordinator("g") == 1
        assert world.broker.count(ApiKey.FIND_COORDINATOR) == 2

    world.run(work)


def test_groups_are_listed_from_all_brokers_by_name() -> None:
    world = world_with_groups()
    other = world.add_broker(2)
    other.ranges = world.broker.ranges
    for broker, names in ((world.broker, ["b", "c"]), (other, ["a"])):
        answer = list_groups.Response(
            groups=[list_groups.ListedGroup(name, "consumer", "Empty", "classic") for name in names]
        )
        broker.always[ApiKey.LIST_GROUPS] = lambda request, version, answer=answer: answer

    async def work() -> None:
        await other.start()
        found = await Groups(world.cluster()).listed(["Empty"], ["classic"])
        assert [item.group for item in found] == ["a", "b", "c"]
        assert found[0] == Listed("a", "classic", "Empty", "consumer", 2)
        assert last(world).states_filter == ["Empty"]
        assert last(world).types_filter == ["classic"]

    world.run(work)


def test_an_old_broker_cannot_list_by_state() -> None:
    world = world_with_groups()
    world.broker.ranges[ApiKey.LIST_GROUPS] = range(0, 4)

    async def work() -> None:
        with pytest.raises(NotServed, match="state"):
            await Groups(world.cluster()).listed(["Empty"])

    world.run(work)


def not_found(request: Any, version: int) -> consumer_group_describe.Response:  # noqa: ANN401
    code = ErrorCode.GROUP_ID_NOT_FOUND
    return consumer_group_describe.Response(
        groups=[consumer_group_describe.DescribedGroup(code, group_id="g")]
    )


def test_a_classic_group_is_described_with_its_members_partitions() -> None:
    world = world_with_groups()
    world.broker.always[ApiKey.CONSUMER_GROUP_DESCRIBE] = not_found
    assignment = encode_versioned(
        ConsumerProtocolAssignment([AssignmentTopicPartition("t", [1, 0])]), 1
    )
    member = describe_groups.DescribedGroupMember("m", "i", "c", "/host", b"", assignment)
    odd = describe_groups.DescribedGroupMember("o", None, "c", "/host", b"", b"\xff")
    world.broker.always[ApiKey.DESCRIBE_GROUPS] = lambda request, version: describe_groups.Response(
        groups=[
            describe_groups.DescribedGroup(
                0, None, "g", "Stable", "consumer", "range", [member, odd]
            )
        ]
    )

    async def work() -> None:
        found = await Groups(world.cluster()).describe("g")
        assert (found.type, found.state, found.assignor) == (CLASSIC, "Stable", "range")
        assert found.is_active
        first, second = found.members
        assert first.partitions == (TopicPartition("t", 0), TopicPartition("t", 1))
        assert (first.instance_id, first.host) == ("i", "/host")
        assert second.partitions == ()

    world.run(work)


def test_a_consumer_group_is_described_by_its_own_api() -> None:
    world = world_with_groups()
    places = [consumer_group_describe.TopicPartitions(b"t" * 16, "t", [0])]
    member = consumer_group_describe.Member(
        "m", client_id="c", assignment=consumer_group_describe.Assignment(places)
    )
    world.broker.always[ApiKey.CONSUMER_GROUP_DESCRIBE] = lambda request, version: (
        consumer_group_describe.Response(
            groups=[
                consumer_group_describe.DescribedGroup(
                    0, None, "g", "Stable", 2, 2, "uniform", [member]
                )
            ]
        )
    )

    async def work() -> None:
        found = await Groups(world.cluster()).describe("g")
        assert (found.type, found.assignor) == (CONSUMER, "uniform")
        assert found.members[0].partitions == (TopicPartition("t", 0),)

    world.run(work)


@pytest.mark.parametrize(
    "answer",
    [
        describe_groups.DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, None, "g"),
        describe_groups.DescribedGroup(0, None, "g", "Dead"),
    ],
)
def test_a_group_that_is_not_there_is_named(answer: describe_groups.DescribedGroup) -> None:
    world = world_with_groups()
    del world.broker.ranges[ApiKey.CONSUMER_GROUP_DESCRIBE]
    world.broker.always[ApiKey.DESCRIBE_GROUPS] = lambda request, version: describe_groups.Response(
        groups=[answer]
    )

    async def work() -> None:
        with pytest.raises(UnknownGroup, match="no group 'g'"):
            await Groups(world.cluster()).describe("g")

    world.run(work)


def test_a_group_with_members_cannot_be_deleted() -> None:
    world = world_with_groups()
    world.broker.always[ApiKey.DELETE_GROUPS] = lambda request, version: delete_groups.Response(
        results=[delete_groups.DeletableGroupResult("g", ErrorCode.NON_EMPTY_GROUP)]
    )

    async def work() -> None:
        with pytest.raises(Refused, match="has members"):
            await Groups(world.cluster()).delete("g")

    world.run(work)


@pytest.mark.parametrize("versions", [range(1, 8), range(1, 11)])
def test_offsets_are_fetched_in_the_way_of_each_version(versions: range) -> None:
    world = world_with_groups()
    world.broker.ranges[ApiKey.OFFSET_FETCH] = versions

    def answer(request: offset_fetch.Request, version: int) -> offset_fetch.Response:
        assert version <= 9
        if version < 8:
            old = [
                offset_fetch.OffsetFetchResponsePartition(0, 5, 1, "note"),
                offset_fetch.OffsetFetchResponsePartition(1, -1),
            ]
            return offset_fetch.Response(topics=[offset_fetch.OffsetFetchResponseTopic("t", old)])
        new = [
            offset_fetch.OffsetFetchResponsePartitions(0, 5, 1, "note"),
            offset_fetch.OffsetFetchResponsePartitions(1, -1),
        ]
        topics = [offset_fetch.OffsetFetchResponseTopics("t", partitions=new)]
        return offset_fetch.Response(groups=[offset_fetch.OffsetFetchResponseGroup("g", topics)])

    world.broker.always[ApiKey.OFFSET_FETCH] = answer

    async def work() -> None:
        found = await Groups(world.cluster()).offsets("g")
        assert found == {TopicPartition("t", 0): Committed(5, 1, "note")}

    world.run(work)


def commit_answer(code: int) -> Any:  # noqa: ANN401
    def answer(request: offset_commit.Request, version: int) -> offset_commit.Response:
        return offset_commit.Response(
            topics=[
                offset_commit.OffsetCommitResponseTopic(
                    topic.name,
                    partitions=[
                        offset_commit.OffsetCommitResponsePartition(item.partition_index, code)
                        for item in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def test_offsets_are_committed_for_a_group_or_a_member() -> None:
    world = world_with_groups()
    world.broker.always[ApiKey.OFFSET_COMMIT] = commit_answer(0)

    async def work() -> None:
        groups = Groups(world.cluster())
        await groups.commit("g", {TopicPartition("t", 0): 5})
        sent = last(world)
        assert (sent.member_id, sent.generation_id_or_member_epoch) == ("", -1)
        assert sent.topics[0].partitions[0].committed_offset == 5
        await groups.commit("g", {TopicPartition("t", 0): 6}, member_id="m", generation=3)
        assert (last(world).member_id, last(world).generation_id_or_member_epoch) == ("m", 3)

    world.run(work)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, Refused),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UnknownTopic),
    ],
)
def test_a_commit_that_is_refused_is_raised(code: ErrorCode, kind: type[Exception]) -> None:
    world = world_with_groups()
    world.broker.always[ApiKey.OFFSET_COMMIT] = commit_answer(code)

    async def work() -> None:
        with pytest.raises(kind):
            await Groups(world.cluster()).commit("g", {TopicPartition("t", 0): 5})

    world.run(work)


def test_offsets_are_deleted_by_partition() -> None:
    world = world_with_groups()
    world.broker.always[ApiKey.OFFSET_DELETE] = lambda request, version: offset_delete.Response()

    async def work() -> None:
        await Groups(world.cluster()).delete_offsets(
            "g", [TopicPartition("t", 0), TopicPartition("t", 1)]
        )
        (topic,) = last(world).topics
        assert [item.partition_index for item in topic.partitions] == [0, 1]

    world.run(work)
