"""Groups as their coordinator knows them: their members, and how far they have read.

An error code in an answer is raised as `Refused`. Nothing here joins a group: `membership.py` does.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import ClientError, NotServed, Refused, check
from ottla.client.metadata import UnknownTopic
from ottla.model.errors import ErrorCode, ProtocolError
from ottla.model.types import NodeId, Offset, TopicPartition
from ottla.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    ConsumerProtocolAssignment,
    decode_versioned,
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

Value = TypeVar("Value")

GROUP_KEY = 0
KEYS_SINCE = 4  # FindCoordinator takes several keys from here on.
STATES_SINCE, TYPES_SINCE = 4, 5  # ListGroups tells states and types.
GROUPS_SINCE = 8  # OffsetFetch takes several groups.
NAMES_VERSION_MAX = 9  # From 10 on, OffsetCommit and OffsetFetch name topics by their ids.
CLASSIC, CONSUMER = "classic", "consumer"


class UnknownGroup(ClientError):
    def __init__(self, group: str) -> None:
        super().__init__(f"there is no group {group!r}")
        self.name = group


class Listed(NamedTuple):
    group: str
    type: str  # "" from brokers that do not tell it, and so the state.
    state: str
    protocol_type: str
    coordinator: NodeId


class Member(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class Described(NamedTuple):
    group: str
    type: str
    state: str
    assignor: str
    coordinator: NodeId
    members: tuple[Member, ...]

    @property
    def is_active(self) -> bool:
        """Whether someone reads for it, so that its offsets are not ours to change."""
        return bool(self.members) or self.state not in ("Empty", "Dead")


class Committed(NamedTuple):
    offset: Offset
    leader_epoch: int = -1
    metadata: str = ""


class Groups:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timeout_ms = cluster.settings.request_ms_max

    async def coordinator(self, group: str) -> NodeId:
        """The broker that looks after a group."""

        async def attempt() -> NodeId:
            if not self._cluster.metadata.nodes:
                await self._cluster.refresh()
            connection = await self._cluster.any_broker()
            request = find_coordinator.Request(key_type=GROUP_KEY)
            if connection.version_for(find_coordinator.Request) >= KEYS_SINCE:
                request.coordinator_keys = [group]
            else:
                request.key = group
            answer = await connection.ask(
                request, find_coordinator.Response, timeout_ms=self._timeout_ms
            )
            found = answer.coordinators[0] if answer.coordinators else answer
            check(found.error_code, found.error_message, about=f"group {group!r}")
            return NodeId(found.node_id)

        return await self._cluster.retrying(attempt)

    async def listed(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[Listed]:
        """All groups of all brokers by name, or those of these states and types."""
        await self._cluster.refresh()
        found: list[Listed] = []
        for node_id in sorted(self._cluster.metadata.nodes):
            found += await self._list_of(node_id, states, types)
        return sorted(found)

    async def describe(self, group: str) -> Described:
        """A group of either protocol; UnknownGroup if there is none."""

        async def attempt(connection: Connection, node_id: NodeId) -> Described:
            try:
                return await self._describe_consumer(connection, node_id, group)
            except NotServed:
                pass  # A broker of before KIP-848 has only classic groups.
            except Refused as failure:
                if failure.code not in NOT_THAT_TYPE:
                    raise
            return await self._describe_classic(connection, node_id, group)

        return await self.at_coordinator(group, attempt)

    async def delete(self, group: str) -> None:
        """Forget a group and all of its offsets; it must have no members."""

        async def attempt(connection: Connection, _node_id: NodeId) -> None:
            answer = await connection.ask(
                delete_groups.Request([group]),
                delete_groups.Response,
                timeout_ms=self._timeout_ms,
            )
            self._check(answer.results[0].error_code, None, group)

        await self.at_coordinator(group, attempt)

    async def offsets(self, group: str) -> dict[TopicPartition, Committed]:
        """What a group has committed, for every partition that it did for."""

        async def attempt(connection: Connection, _node_id: NodeId) -> offset_fetch.Response:
            request = offset_fetch.Request(group_id=group, topics=None)
            if connection.version_for(offset_fetch.Request, NAMES_VERSION_MAX) >= GROUPS_SINCE:
                wanted = offset_fetch.OffsetFetchRequestGroup(group, topics=None)
                request = offset_fetch.Request(groups=[wanted])
            answer = await connection.ask(
                request,
                offset_fetch.Response,
                timeout_ms=self._timeout_ms,
                version_max=NAMES_VERSION_MAX,
            )
            own = answer.groups[0] if answer.groups else answer
            self._check(own.error_code, None, group)
            return answer

        answer = await self.at_coordinator(group, attempt)
        topics = answer.groups[0].topics if answer.groups else answer.topics
        return {
            TopicPartition(topic.name, item.partition_index): Committed(
                item.committed_offset, item.committed_leader_epoch, item.metadata or ""
            )
            for topic in topics
            for item in topic.partitions
            if item.error_code == ErrorCode.NONE and item.committed_offset >= 0
        }

    async def commit(
        self,
        group: str,
        offsets: Mapping[TopicPartition, Offset],
        *,
        member_id: str = "",
        generation: int = -1,
        metadata: str = "",
    ) -> None:
        """Say how far a group has read; without a member only a group without members lets it."""
        topics: dict[str, offset_commit.OffsetCommitRequestTopic] = {}
        for (name, partition), offset in offsets.items():
            topics.setdefault(name, offset_commit.OffsetCommitRequestTopic(name)).partitions.append(
                offset_commit.OffsetCommitRequestPartition(
                    partition, offset, committed_metadata=metadata
                )
            )
        request = offset_commit.Request(group, generation, member_id, topics=list(topics.values()))

        async def attempt(connection: Connection, _node_id: NodeId) -> None:
            answer = await connection.ask(
                request,
                offset_commit.Response,
                timeout_ms=self._timeout_ms,
                version_max=NAMES_VERSION_MAX,
            )
            for topic in answer.topics:
                for item in topic.partitions:
                    if item.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        raise UnknownTopic(topic.name)
                    about = f"group {group!r}, {topic.name}-{item.partition_index}"
                    check(item.error_code, about=about)

        await self.at_coordinator(group, attempt)

    async def delete_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget what a group committed for these; nobody may be subscribed to their topics."""
        topics: dict[str, offset_delete.OffsetDeleteRequestTopic] = {}
        for name, partition in partitions:
            topics.setdefault(name, offset_delete.OffsetDeleteRequestTopic(name)).partitions.append(
                offset_delete.OffsetDeleteRequestPartition(partition)
            )
        request = offset_delete.Request(group, list(topics.values()))

        async def attempt(connection: Connection, _node_id: NodeId) -> None:
            answer = await connection.ask(
                request, offset_delete.Response, timeout_ms=self._timeout_ms
            )
            self._check(answer.error_code, None, group)
            for topic in answer.topics:
                for item in topic.partitions:
                    check(item.error_code, about=f"{topic.name}-{item.partition_index}")

        await self.at_coordinator(group, attempt)

    async def _list_of(
        self, node_id: NodeId, states: Sequence[str], types: Sequence[str]
    ) -> list[Listed]:
        async def attempt() -> list[Listed]:
            connection = await self._cluster.broker(node_id)
            version = connection.version_for(list_groups.Request)
            if states and version < STATES_SINCE:
                raise NotServed(f"broker {node_id} cannot list groups by their state")
            if types and version < TYPES_SINCE:
                raise NotServed(f"broker {node_id} cannot list groups by their type")
            answer = await connection.ask(
                list_groups.Request([*states], [*types]),
                list_groups.Response,
                timeout_ms=self._timeout_ms,
            )
            check(answer.error_code, about=f"broker {node_id}")
            return [
                Listed(
                    item.group_id, item.group_type, item.group_state, item.protocol_type, node_id
                )
                for item in answer.groups
            ]

        return await self._cluster.retrying(attempt)

    async def _describe_consumer(
        self, connection: Connection, node_id: NodeId, group: str
    ) -> Described:
        answer = await connection.ask(
            consumer_group_describe.Request([group]),
            consumer_group_describe.Response,
            timeout_ms=self._timeout_ms,
        )
        found = answer.groups[0]
        check(found.error_code, found.error_message)
        members = tuple(
            Member(
                item.member_id,
                item.instance_id,
                item.client_id,
                item.client_host,
                _places((t.topic_name, t.partitions) for t in item.assignment.topic_partitions),
            )
            for item in found.members
        )
        return Described(group, CONSUMER, found.group_state, found.assignor_name, node_id, members)

    async def _describe_classic(
        self, connection: Connection, node_id: NodeId, group: str
    ) -> Described:
        answer = await connection.ask(
            describe_groups.Request([group]),
            describe_groups.Response,
            timeout_ms=self._timeout_ms,
        )
        found = answer.groups[0]
        self._check(found.error_code, found.error_message, group)
        if found.group_state == "Dead":
            raise UnknownGroup(group)  # How brokers said it before version 6.
        members = tuple(
            Member(
                item.member_id,
                item.group_instance_id,
                item.client_id,
                item.client_host,
                _assigned(found.protocol_type, item.member_assignment),
            )
            for item in found.members
        )
        return Described(group, CLASSIC, found.group_state, found.protocol_data, node_id, members)

    async def at_coordinator(
        self, group: str, attempt: Callable[[Connection, NodeId], Awaitable[Value]]
    ) -> Value:
        async def found() -> Value:
            node_id = await self.coordinator(group)  # Anew each time: it may just have moved.
            return await attempt(await self._cluster.broker(node_id), node_id)

        return await self._cluster.retrying(found)

    def _check(self, code: int, message: str | None, group: str) -> None:
        if code == ErrorCode.GROUP_ID_NOT_FOUND:
            raise UnknownGroup(group)
        check(code, message, about=f"group {group!r}")


NOT_THAT_TYPE = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


def _assigned(protocol_type: str, data: bytes) -> tuple[TopicPartition, ...]:
    """What a member was given, if it is a consumer's assignment: others' bytes are their own."""
    if protocol_type != CONSUMER_PROTOCOL_TYPE or not data:
        return ()
    try:
        assignment, _ = decode_versioned(ConsumerProtocolAssignment, data)
    except ProtocolError:
        return ()
    return _places((item.topic, item.partitions) for item in assignment.assigned_partitions)


def _places(topics: Iterable[tuple[str, Iterable[int]]]) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(TopicPartition(topic, index) for topic, indexes in topics for index in indexes)
    )
