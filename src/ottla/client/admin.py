"""What one does to a cluster besides reading and writing: topics, configs, a look at its state.

Results are the broker's own answers; an error code in them is raised as `Refused`. In KRaft every
broker passes such requests on to the controller, so any broker may be asked.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

from ottla.client.cluster import Cluster
from ottla.client.connection import Connection
from ottla.client.errors import check
from ottla.client.metadata import UnknownTopic
from ottla.client.protocol import Request
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, Offset, TopicPartition
from ottla.protocol.messages import (
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_quorum,
    incremental_alter_configs,
    metadata,
)

Answer = TypeVar("Answer")

BROKER_DEFAULT = -1  # For a count that the broker's own settings decide.
METADATA_TOPIC = "__cluster_metadata"
IDS_SINCE = 6  # DeleteTopics names topics by a list of structs from here on.
DOCUMENTATION_SINCE = 3
FENCED_SINCE = 2


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Admin:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timeout_ms = cluster.settings.request_ms_max

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
        assignments: Mapping[int, Sequence[NodeId]] | None = None,
        validate_only: bool = False,
    ) -> create_topics.CreatableTopicResult:
        """Make a topic; with `assignments` (brokers per partition) the counts are theirs."""
        topic = create_topics.CreatableTopic(
            name,
            BROKER_DEFAULT if assignments else partitions,
            BROKER_DEFAULT if assignments else replication_factor,
            [
                create_topics.CreatableReplicaAssignment(index, [int(node) for node in nodes])
                for index, nodes in (assignments or {}).items()
            ],
            [create_topics.CreatableTopicConfig(*item) for item in (configs or {}).items()],
        )
        request = create_topics.Request([topic], self._timeout_ms, validate_only)

        async def attempt() -> create_topics.CreatableTopicResult:
            answer = await self._ask(request, create_topics.Response)
            result = answer.topics[0]
            check(result.error_code, result.error_message)
            return result

        result = await self._cluster.retrying(attempt)
        self._cluster.forget(name)
        return result

    async def delete_topic(self, name: str) -> None:
        async def attempt() -> None:
            connection = await self._cluster.controller()
            request = delete_topics.Request(timeout_ms=self._timeout_ms)
            if connection.version_for(delete_topics.Request) >= IDS_SINCE:
                request.topics = [delete_topics.DeleteTopicState(name)]
            else:
                request.topic_names = [name]
            answer = await self._ask(request, delete_topics.Response, connection)
            result = answer.responses[0]
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(name)
            check(result.error_code, result.error_message, about=f"topic {name!r}")

        await self._cluster.retrying(attempt)
        self._cluster.forget(name)

    async def create_partitions(
        self, name: str, count: int, *, validate_only: bool = False
    ) -> None:
        """Let a topic have `count` partitions in all."""
        topic = create_partitions.CreatePartitionsTopic(name, count, None)
        request = create_partitions.Request([topic], self._timeout_ms, validate_only)

        async def attempt() -> None:
            answer = await self._ask(request, create_partitions.Response)
            result = answer.results[0]
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(name)
            check(result.error_code, result.error_message)

        await self._cluster.retrying(attempt)
        self._cluster.forget(name)

    async def describe_topics(
        self, names: Sequence[str] | None = None
    ) -> list[metadata.MetadataResponseTopic]:
        """The named topics, or all of them, sorted by name."""
        wanted = None
        if names is not None:
            wanted = [metadata.MetadataRequestTopic(name=name) for name in names]
        request = metadata.Request(wanted, allow_auto_topic_creation=False)

        async def attempt() -> metadata.Response:
            return await self._ask(request, metadata.Response, await self._cluster.any_broker())

        answer = await self._cluster.retrying(attempt)
        self._cluster.metadata.update(answer)
        for topic in answer.topics:
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(topic.name or "?")
            check(topic.error_code, about=f"topic {topic.name!r}")
        return sorted(answer.topics, key=lambda topic: topic.name or "")

    async def delete_records(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        """Drop what lies before an offset (-1: before the end), per partition."""
        for topic_partition, offset in offsets.items():
            await self._delete_records_of(topic_partition, offset)

    async def describe_configs(
        self,
        kind: ResourceType,
        name: str,
        keys: Sequence[str] | None = None,
        *,
        documentation: bool = False,
    ) -> list[describe_configs.DescribeConfigsResourceResult]:
        """The configs of a topic or a broker, sorted by name; a broker answers for itself."""
        resource = describe_configs.DescribeConfigsResource(
            kind, name, None if keys is None else list(keys)
        )

        async def attempt() -> describe_configs.DescribeConfigsResult:
            connection = await self._resource_owner(kind, name)
            version = connection.version_for(describe_configs.Request)
            request = describe_configs.Request(
                [resource], True, documentation and version >= DOCUMENTATION_SINCE
            )
            answer = await self._ask(request, describe_configs.Response, connection)
            result = answer.results[0]
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(name)
            check(result.error_code, result.error_message)
            return result

        result = await self._cluster.retrying(attempt)
        return sorted(result.configs, key=lambda config: config.name)

    async def alter_configs(
        self,
        kind: ResourceType,
        name: str,
        changes: Sequence[tuple[Operation, str, str | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Change some configs of a topic or a broker, all or none of them."""
        resource = incremental_alter_configs.AlterConfigsResource(
            kind,
            name,
            [
                incremental_alter_configs.AlterableConfig(key, operation, value)
                for operation, key, value in changes
            ],
        )
        request = incremental_alter_configs.Request([resource], validate_only)

        async def attempt() -> None:
            connection = await self._resource_owner(kind, name)
            answer = await self._ask(request, incremental_alter_configs.Response, connection)
            result = answer.responses[0]
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(name)
            check(result.error_code, result.error_message)

        await self._cluster.retrying(attempt)

    async def describe_cluster(self) -> describe_cluster.Response:
        async def attempt() -> describe_cluster.Response:
            connection = await self._cluster.any_broker()
            version = connection.version_for(describe_cluster.Request)
            request = describe_cluster.Request(include_fenced_brokers=version >= FENCED_SINCE)
            answer = await self._ask(request, describe_cluster.Response, connection)
            check(answer.error_code, answer.error_message)
            return answer

        return await self._cluster.retrying(attempt)

    async def log_dirs(self, node_id: NodeId) -> list[describe_log_dirs.DescribeLogDirsResult]:
        """The log directories of one broker, with the size of each partition there."""

        async def attempt() -> describe_log_dirs.Response:
            request = describe_log_dirs.Request(None)
            connection = await self._cluster.broker(node_id)
            answer = await self._ask(request, describe_log_dirs.Response, connection)
            check(answer.error_code, about=f"broker {node_id}")
            return answer

        return (await self._cluster.retrying(attempt)).results

    async def features(self) -> api_versions.Response:
        """What a broker said when it was first met: its APIs and the cluster's features."""
        return (await self._cluster.any_broker()).api_versions

    async def quorum(self) -> describe_quorum.ResponsePartitionData:
        """The state of the metadata log: its leader, voters and observers."""
        topic = describe_quorum.RequestTopicData(
            METADATA_TOPIC, [describe_quorum.RequestPartitionData(0)]
        )

        async def attempt() -> describe_quorum.ResponsePartitionData:
            answer = await self._ask(describe_quorum.Request([topic]), describe_quorum.Response)
            check(answer.error_code, answer.error_message)
            result = answer.topics[0].partitions[0]
            check(result.error_code, result.error_message)
            return result

        return await self._cluster.retrying(attempt)

    async def _delete_records_of(self, topic_partition: TopicPartition, offset: Offset) -> None:
        name, partition = topic_partition
        topic = delete_records.DeleteRecordsTopic(
            name, [delete_records.DeleteRecordsPartition(partition, offset)]
        )
        request = delete_records.Request([topic], self._timeout_ms)

        async def attempt() -> None:
            connection = await self._cluster.leader(topic_partition)
            answer = await self._ask(request, delete_records.Response, connection)
            result = answer.topics[0].partitions[0]
            if result.error_code:
                self._cluster.forget(name)
            check(result.error_code, about=str(topic_partition))

        await self._cluster.retrying(attempt)

    async def _resource_owner(self, kind: ResourceType, name: str) -> Connection:
        if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name:
            return await self._cluster.broker(NodeId(int(name)))
        return await self._cluster.controller()

    async def _ask(
        self, request: Request, answer: type[Answer], connection: Connection | None = None
    ) -> Answer:
        connection = connection or await self._cluster.controller()
        return await connection.ask(request, answer, timeout_ms=self._timeout_ms)
