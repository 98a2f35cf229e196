"""A group coordinator of a few lines, beside the fake broker: it believes all that it is told."""

from typing import Any

from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.messages import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from tests.unit.client.fake_broker import World

GROUP_APIS = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.LIST_GROUPS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.DELETE_GROUPS,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_DELETE,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
)


class FakeCoordinator:
    """`offsets` by group and partition; one member at most, whose id it gives."""

    def __init__(self) -> None:
        self.offsets: dict[str, dict[TopicPartition, int]] = {}
        self.notes: dict[tuple[str, TopicPartition], str] = {}  # What was committed with them.
        self.states: dict[str, str] = {}
        self.members: list[describe_groups.DescribedGroupMember] = []
        self.generation = 0
        self.joined: set[str] = set()
        self.is_rebalancing = False

    def serve_find_coordinator(
        self, request: find_coordinator.Request, version: int
    ) -> find_coordinator.Response:
        if version < 4:
            assert request.key
            return find_coordinator.Response(node_id=1)
        return find_coordinator.Response(
            coordinators=[find_coordinator.Coordinator(key, 1) for key in request.coordinator_keys]
        )

    def serve_list_groups(self, request: Any, version: int) -> list_groups.Response:  # noqa: ANN401
        return list_groups.Response(
            groups=[
                list_groups.ListedGroup(name, "consumer", state, "classic")
                for name, state in self.states.items()
            ]
        )

    def serve_consumer_group_describe(
        self, request: consumer_group_describe.Request, version: int
    ) -> consumer_group_describe.Response:
        code = ErrorCode.GROUP_ID_NOT_FOUND
        return consumer_group_describe.Response(
            groups=[
                consumer_group_describe.DescribedGroup(code, group_id=name)
                for name in request.group_ids
            ]
        )

    def serve_describe_groups(
        self, request: describe_groups.Request, version: int
    ) -> describe_groups.Response:
        (name,) = request.groups
        if name not in self.states:
            found = describe_groups.DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, None, name)
        else:
            found = describe_groups.DescribedGroup(
                0, None, name, self.states[name], "consumer", "range", self.members
            )
        return describe_groups.Response(groups=[found])

    def serve_delete_groups(
        self, request: delete_groups.Request, version: int
    ) -> delete_groups.Response:
        (name,) = request.groups_names
        code = ErrorCode.NONE if self.states.pop(name, None) else ErrorCode.GROUP_ID_NOT_FOUND
        return delete_groups.Response(results=[delete_groups.DeletableGroupResult(name, code)])

    def serve_offset_fetch(
        self, request: offset_fetch.Request, version: int
    ) -> offset_fetch.Response:
        assert 8 <= version <= 9, "topics by name, groups in a list"
        name = request.groups[0].group_id
        topics = [
            offset_fetch.OffsetFetchResponseTopics(
                place.topic,
                partitions=[
                    offset_fetch.OffsetFetchResponsePartitions(
                        place.partition, offset, metadata=self.notes.get((name, place), "")
                    )
                ],
            )
            for place, offset in self.offsets.get(name, {}).items()
        ]
        return offset_fetch.Response(groups=[offset_fetch.OffsetFetchResponseGroup(name, topics)])

    def serve_offset_commit(
        self, request: offset_commit.Request, version: int
    ) -> offset_commit.Response:
        code = ErrorCode.NONE
        if request.generation_id_or_member_epoch not in (-1, self.generation):
            code = ErrorCode.ILLEGAL_GENERATION
        known = self.offsets.setdefault(request.group_id, {})
        answer = offset_commit.Response()
        for topic in request.topics:
            partitions = []
            for item in topic.partitions:
                if code == ErrorCode.NONE:
                    place = TopicPartition(topic.name, item.partition_index)
                    known[place] = item.committed_offset
                    self.notes[request.group_id, place] = item.committed_metadata or ""
                partitions.append(
                    offset_commit.OffsetCommitResponsePartition(item.partition_index, code)
                )
            answer.topics.append(
                offset_commit.OffsetCommitResponseTopic(topic.name, partitions=partitions)
            )
        return answer

    def serve_offset_delete(
        self, request: offset_delete.Request, version: int
    ) -> offset_delete.Response:
        for topic in request.topics:
            for item in topic.partitions:
                del self.offsets[request.group_id][TopicPartition(topic.name, item.partition_index)]
        return offset_delete.Response()

    def serve_join_group(self, request: join_group.Request, version: int) -> join_group.Response:
        if not request.member_id:
            return join_group.Response(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="m1")
        self.joined.add(request.member_id)
        self.generation += 1
        self.is_rebalancing = False
        (protocol,) = request.protocols
        return join_group.Response(
            generation_id=self.generation,
            protocol_name=protocol.name,
            leader=request.member_id,
            member_id=request.member_id,
            members=[
                join_group.JoinGroupResponseMember(request.member_id, None, protocol.metadata)
            ],
        )

    def serve_sync_group(self, request: sync_group.Request, version: int) -> sync_group.Response:
        (own,) = [a for a in request.assignments if a.member_id == request.member_id]
        return sync_group.Response(assignment=own.assignment)

    def serve_heartbeat(self, request: heartbeat.Request, version: int) -> heartbeat.Response:
        if request.member_id not in self.joined:
            return heartbeat.Response(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        code = ErrorCode.REBALANCE_IN_PROGRESS if self.is_rebalancing else ErrorCode.NONE
        return heartbeat.Response(error_code=code)

    def serve_leave_group(self, request: leave_group.Request, version: int) -> leave_group.Response:
        self.joined -= {member.member_id for member in request.members}
        return leave_group.Response()


def world_with_groups() -> tuple[World, FakeCoordinator]:
    world, coordinator = World(), FakeCoordinator()
    for key in GROUP_APIS:
        world.broker.ranges[key] = request_class(key).VERSIONS
        world.broker.always[key] = getattr(coordinator, f"serve_{key.name.lower()}")
    return world, coordinator
