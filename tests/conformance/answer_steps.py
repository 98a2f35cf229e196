"""The steps of the answer script: one request each, made for every version that has it."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ottla.protocol.messages import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
    produce,
)
from tests.conformance import answer_batches as batches
from tests.conformance.answer_world import NO_SUCH_ID, World

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


@dataclass
class Step:
    name: str
    versions: Iterable[int]
    request: Callable[[World, int], Any]
    settles: bool = False  # It changes topics, which Apache Kafka's broker learns a moment later.


STEPS: list[Step] = []


def step(name: str, versions: Iterable[int], settles: bool = False):  # noqa: ANN201
    def add(request: Callable[[World, int], Any]) -> Callable[[World, int], Any]:
        STEPS.append(Step(name, versions, request, settles))
        return request

    return add


# CreateTopics first: the other steps use what it makes.


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **config: str | None) -> Any:  # noqa: ANN401
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[
            create_topics.CreatableTopicConfig(key.replace("_", "."), value)
            for key, value in config.items()
        ],
    )


def assigned(name: str, *assignments: tuple[int, list[int]], partitions: int = -1) -> Any:  # noqa: ANN401
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        assignments=[
            create_topics.CreatableReplicaAssignment(index, brokers)
            for index, brokers in assignments
        ],
    )


@step("CreateTopics makes topics", range(2, 8), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(
        topics=[
            new_topic(f"plain-{version}", 2),
            new_topic(f"set-{version}", 1, 1, retention_ms="1000", cleanup_policy="compact"),
            assigned(f"assigned-{version}", (0, [1]), (1, [1])),
            new_topic(f"dotted.{version}"),
        ]
    )


@step("CreateTopics refuses", range(2, 8))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(
        topics=[
            new_topic("plain-2"),
            new_topic("bad name"),
            new_topic(""),
            new_topic("."),
            new_topic("x" * 250),
            new_topic("dotted_2"),
            new_topic("no-partitions", 0),
            new_topic("negative", -3),
            new_topic("replicas", 1, 3),
            new_topic("no-replicas", 1, 0),
            new_topic("unknown-config", no_such="1"),
            new_topic("bad-config", retention_ms="soon"),
            new_topic("low-config", segment_bytes="1"),
            new_topic("null-config", retention_ms=None),
            assigned("both", (0, [1]), partitions=1),
            assigned("gap", (0, [1]), (2, [1])),
            assigned("stranger", (0, [9])),
            assigned("twice", (0, [1, 1])),
            assigned("nobody", (0, [])),
            new_topic("same"),
            new_topic("same"),
        ]
    )


@step("CreateTopics uses the broker's defaults", range(4, 8), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(topics=[new_topic(f"defaults-{version}", -1, -1)])


@step("CreateTopics only validates", range(2, 8))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(
        topics=[new_topic("imagined", 3), new_topic("plain-2")], validate_only=True
    )


@step("CreateTopics makes what the next steps use", [7], settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return create_topics.Request(
        topics=[
            new_topic("log"),
            new_topic("bad"),
            new_topic("small", max_message_bytes="500"),
            new_topic("compacted", cleanup_policy="compact"),
            new_topic("idempotent"),
            new_topic("sessions", 2),
            new_topic("strict", message_timestamp_after_max_ms="1000"),
        ]
    )


@step("CreatePartitions", range(4), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    def topic(name: str, count: int, *assignments: list[int]) -> Any:  # noqa: ANN401
        made = [create_partitions.CreatePartitionsAssignment(brokers) for brokers in assignments]
        return create_partitions.CreatePartitionsTopic(name, count, made or None)

    return create_partitions.Request(
        topics=[
            topic("plain-2", 3 + version),
            topic("plain-3", 1),
            topic("plain-4", 2),
            topic("plain-5", 0),
            topic("plain-6", 3, [9]),
            topic("plain-7", 4, [1]),
            topic("no-such-topic", 2),
        ],
        timeout_ms=10_000,
    )


@step("DeleteTopics", range(1, 6), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    names = [f"set-{version + 1}", "no-such-topic", "bad name"]
    return delete_topics.Request(topic_names=names, timeout_ms=10_000)


@step("DeleteTopics by id", [6], settles=True)
def _(world: World, version: int) -> Any:  # noqa: ANN401
    state = delete_topics.DeleteTopicState
    return delete_topics.Request(
        topics=[
            state(name="assigned-2"),
            state(topic_id=world.topic_id("assigned-3")),
            state(name="no-such-topic"),
            state(topic_id=NO_SUCH_ID),
        ],
        timeout_ms=10_000,
    )


# Produce.


def produced(
    world: World, version: int, *batches_by_topic: tuple[str, int, bytes | None], acks: int = -1
) -> Any:  # noqa: ANN401
    return produce.Request(
        acks=acks,
        timeout_ms=5000,
        topic_data=[
            produce.TopicProduceData(
                name=topic,
                topic_id=world.topic_id(topic) if version >= 13 else bytes(16),
                partition_data=[produce.PartitionProduceData(partition, data)],
            )
            for topic, partition, data in batches_by_topic
        ],
    )


@step("Produce appends", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("log", 0, batches.plain(3)), acks=-1 if version % 2 else 1)


@step("Produce to what does not exist", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("no-such-topic", 0, batches.plain(1)))


@step("Produce to a partition that does not exist", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("log", 7, batches.plain(1)))


@step("Produce with acks that do not exist", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("log", 0, batches.plain(1)), acks=2)


@step("Produce above the topic's limit", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("small", 0, batches.plain(1, size=1000)))


@step("Produce far ahead of time", range(3, 14))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("strict", 0, batches.plain(1, timestamp=10**13)))


for codec, number in {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}.items():

    @step(f"Produce with {codec}", (3, 6, 7, 13))
    def _(world: World, version: int, number: int = number) -> Any:  # noqa: ANN401
        return produced(world, version, ("log", 0, batches.plain(2, codec=number)))


for kind, data in batches.BAD.items():

    @step(f"Produce {kind}", (3, 8, 13))
    def _(world: World, version: int, data: bytes | None = data) -> Any:  # noqa: ANN401
        return produced(world, version, ("bad", 0, data))


@step("Produce without a key to a compacted topic", (3, 8, 13))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("compacted", 0, batches.plain(2)))


for kind, data in batches.IDEMPOTENT:

    @step(f"Produce, idempotent: {kind}", [9])
    def _(world: World, version: int, data: bytes = data) -> Any:  # noqa: ANN401
        return produced(world, version, ("idempotent", 0, data))


@step("InitProducerId", range(6))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return init_producer_id.Request(transactional_id=None, transaction_timeout_ms=60_000)


# Fetch.


def fetched(
    world: World,
    version: int,
    topic: str,
    offset: int,
    *,
    partitions: Iterable[int] = (0,),
    bytes_max: int = 1 << 20,
    **more: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    return fetch.Request(
        max_wait_ms=more.pop("max_wait_ms", 100),
        min_bytes=more.pop("min_bytes", 0),
        max_bytes=1 << 24,
        topics=[
            fetch.FetchTopic(
                topic=topic,
                topic_id=world.topic_id(topic) if version >= 13 else bytes(16),
                partitions=[
                    fetch.FetchPartition(
                        partition=partition,
                        fetch_offset=offset,
                        partition_max_bytes=bytes_max,
                        current_leader_epoch=more.get("epoch", -1),
                    )
                    for partition in partitions
                ],
            )
        ],
        **{key: value for key, value in more.items() if key != "epoch"},
    )


@step("Fetch from the start", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 0)


@step("Fetch within a batch, one byte at most", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 4, bytes_max=1)


@step("Fetch at the end", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "small", 0, min_bytes=1, max_wait_ms=50)


@step("Fetch out of range", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 100_000)


@step("Fetch from what does not exist", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "no-such-topic", 0)


@step("Fetch from a partition that does not exist", range(4, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 0, partitions=[7])


@step("Fetch with a later leader epoch", range(9, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "log", 0, epoch=5)


@step("Fetch opens a session", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetched(world, version, "sessions", 0, partitions=[0, 1], session_epoch=0)


def in_session(world: World, version: int, epoch: int) -> Any:  # noqa: ANN401
    session_id = world.answers["Fetch opens a session", version].session_id
    return fetch.Request(
        max_wait_ms=20, min_bytes=0, session_id=session_id, session_epoch=epoch, topics=[]
    )


@step("Fetch in a session without news", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return in_session(world, version, 1)


@step("Produce news for the sessions", [9])
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return produced(world, version, ("sessions", 1, batches.plain(1)))


@step("Fetch in a session with news", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return in_session(world, version, 2)


@step("Fetch in a session with a wrong epoch", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return in_session(world, version, 9)


@step("Fetch in a session that does not exist", range(7, 19))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    return fetch.Request(max_wait_ms=20, min_bytes=0, session_id=1, session_epoch=1, topics=[])


# Offsets.

TIMES = {"latest": -1, "earliest": -2, "time zero": 0, "time of the second": batches.TIME + 1}
LATER_TIMES = {"max timestamp": (-3, 7), "earliest local": (-4, 8), "latest tiered": (-5, 9)}


def offsets_listed(name: str, partition: int, timestamp: int) -> Any:  # noqa: ANN401
    return list_offsets.Request(
        replica_id=-1,
        topics=[
            list_offsets.ListOffsetsTopic(
                name,
                [list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)],
            )
        ],
        timeout_ms=5000,
    )


for words, timestamp in TIMES.items():

    @step(f"ListOffsets {words}", range(1, 12))
    def _(_: World, version: int, timestamp: int = timestamp) -> Any:  # noqa: ANN401
        return offsets_listed("log", 0, timestamp)


for words, (timestamp, since) in LATER_TIMES.items():

    @step(f"ListOffsets {words}", range(since, 12))
    def _(_: World, version: int, timestamp: int = timestamp) -> Any:  # noqa: ANN401
        return offsets_listed("log", 0, timestamp)


@step("ListOffsets with a timestamp before its version", (1, 6, 11))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return offsets_listed("log", 0, -9)


@step("ListOffsets after the last record", range(1, 12))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return offsets_listed("log", 0, 10**14)


@step("ListOffsets of what does not exist", range(1, 12))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return offsets_listed("no-such-topic", 0, -1)


@step("OffsetForLeaderEpoch", range(2, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    def topic(name: str, partition: int, epoch: int, current: int = -1) -> Any:  # noqa: ANN401
        asked = offset_for_leader_epoch.OffsetForLeaderPartition(partition, current, epoch)
        return offset_for_leader_epoch.OffsetForLeaderTopic(name, [asked])

    return offset_for_leader_epoch.Request(
        replica_id=-1,
        topics=[
            topic("log", 0, 0),
            topic("small", 0, 7),
            topic("idempotent", 0, 0, current=7),
            topic("sessions", 5, 0),
            topic("no-such-topic", 0, 0),
        ],
    )


@step("DeleteRecords", range(3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    def topic(name: str, partition: int, offset: int) -> Any:  # noqa: ANN401
        asked = delete_records.DeleteRecordsPartition(partition, offset)
        return delete_records.DeleteRecordsTopic(name, [asked])

    return delete_records.Request(
        topics=[
            topic("log", 0, 2 + version),
            topic("sessions", 0, 50),
            topic("no-such-topic", 0, 1),
            topic("idempotent", 9, 1),
            topic("compacted", 0, 0),
        ],
        timeout_ms=5000,
    )


# Metadata and descriptions.


@step("Metadata by name", range(14))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    # Before version 4, to ask for a topic is to make it.
    names = ["log", "sessions", "bad name"] + ["no-such-topic"] * (version >= 4)
    asked = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.Request(topics=asked, allow_auto_topic_creation=version < 4)


@step("Metadata of all topics", (0, 1, 7, 10, 13))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return metadata.Request(topics=[] if version == 0 else None)


@step("Metadata of no topics", range(1, 14))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return metadata.Request(topics=[])


@step("Metadata by id", (12, 13))
def _(world: World, version: int) -> Any:  # noqa: ANN401
    asked = [
        metadata.MetadataRequestTopic(topic_id=topic_id, name=None)
        for topic_id in (world.topic_id("log"), NO_SUCH_ID)
    ]
    return metadata.Request(topics=asked)


@step("Metadata with permitted operations", range(8, 14))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return metadata.Request(
        topics=[metadata.MetadataRequestTopic(name="log")],
        include_cluster_authorized_operations=version <= 10,
        include_topic_authorized_operations=True,
    )


@step("DescribeTopicPartitions", [0])
def _(_: World, version: int) -> Any:  # noqa: ANN401
    names = ("log", "sessions", "no-such-topic")
    asked = [describe_topic_partitions.TopicRequest(name) for name in names]
    return describe_topic_partitions.Request(topics=asked)


@step("DescribeTopicPartitions page by page", [0])
def _(_: World, version: int) -> Any:  # noqa: ANN401
    asked = [describe_topic_partitions.TopicRequest(name) for name in ("log", "sessions")]
    return describe_topic_partitions.Request(topics=asked, response_partition_limit=2)


@step("DescribeCluster", range(3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return describe_cluster.Request(include_cluster_authorized_operations=True)


@step("DescribeCluster of controllers", (1, 2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return describe_cluster.Request(endpoint_type=2)


@step("DescribeLogDirs", range(1, 6))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    topics = [
        describe_log_dirs.DescribableLogDirTopic("log", [0]),
        describe_log_dirs.DescribableLogDirTopic("sessions", [1, 7]),
        describe_log_dirs.DescribableLogDirTopic("no-such-topic", [0]),
    ]
    return describe_log_dirs.Request(topics=topics)


@step("ApiVersions", range(5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return api_versions.Request(client_software_name="ottla", client_software_version="1.0")


@step("ApiVersions with a bad software name", (3, 4))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return api_versions.Request(client_software_name="", client_software_version="!")


# Configs.

BROKER_KEYS = [
    "node.id", "log.retention.hours", "log.retention.ms", "message.max.bytes", "num.partitions",
    "log.segment.bytes", "auto.create.topics.enable", "compression.type", "log.cleanup.policy",
    "min.insync.replicas", "process.roles", "broker.rack", "log.flush.interval.messages",
]  # fmt: skip


@step("DescribeConfigs of a topic", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    asked = describe_configs.DescribeConfigsResource(TOPIC, "small", None)
    return describe_configs.Request([asked], True, include_documentation=version >= 3)


@step("DescribeConfigs by key", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    resource = describe_configs.DescribeConfigsResource
    return describe_configs.Request(
        [
            resource(TOPIC, "log", ["retention.ms", "no.such"]),
            resource(TOPIC, "compacted", []),
            resource(TOPIC, "no-such-topic", None),
            resource(TOPIC, "bad name", None),
            resource(BROKER, "1", BROKER_KEYS),
            resource(BROKER, "9", None),
            resource(BROKER, "x", None),
            resource(BROKER, "", None),
        ]
    )


@step("DescribeConfigs of a kind that does not exist", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    resource = describe_configs.DescribeConfigsResource
    return describe_configs.Request([resource(TOPIC, "log", []), resource(99, "1", None)])


@step("DescribeConfigs of a broker with synonyms", range(1, 5))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    asked = describe_configs.DescribeConfigsResource(BROKER, "1", BROKER_KEYS)
    return describe_configs.Request([asked], True, include_documentation=version >= 3)


def changed(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Any:  # noqa: ANN401
    return incremental_alter_configs.AlterConfigsResource(
        kind, name, [incremental_alter_configs.AlterableConfig(*change) for change in changes]
    )


@step("IncrementalAlterConfigs", range(2), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request(
        [
            changed(TOPIC, "plain-2", ("retention.ms", SET, "5"), ("segment.ms", DELETE, None)),
            changed(TOPIC, "plain-3", ("cleanup.policy", APPEND, "compact")),
            changed(TOPIC, "plain-4", ("cleanup.policy", SUBTRACT, "delete")),
            changed(TOPIC, "plain-5", ("retention.ms", APPEND, "5")),
            changed(TOPIC, "plain-6", ("no.such", SET, "5")),
            changed(TOPIC, "plain-7", ("retention.ms", SET, None)),
            changed(TOPIC, "log", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")),
            changed(TOPIC, "sessions", ("segment.bytes", SET, "-1")),
            changed(TOPIC, "no-such-topic", ("retention.ms", SET, "5")),
            changed(TOPIC, "bad name", ("retention.ms", SET, "5")),
            changed(BROKER, "1", ("node.id", SET, "2")),
            changed(BROKER, "9", ("log.retention.ms", SET, "2")),
            changed(BROKER, "x", ("log.retention.ms", SET, "2")),
        ]
    )


@step("IncrementalAlterConfigs of a kind that does not exist", range(2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request([changed(99, "1", ("log.retention.ms", SET, "2"))])


@step("IncrementalAlterConfigs by an operation that does not exist", range(2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request([changed(TOPIC, "small", ("retention.ms", 9, "5"))])


@step("IncrementalAlterConfigs only validates", range(2))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    return incremental_alter_configs.Request(
        [changed(TOPIC, "log", ("retention.ms", SET, "77"))], validate_only=True
    )


@step("AlterConfigs", range(3), settles=True)
def _(_: World, version: int) -> Any:  # noqa: ANN401
    def resource(kind: int, name: str, **config: str) -> Any:  # noqa: ANN401
        return alter_configs.AlterConfigsResource(
            kind,
            name,
            [alter_configs.AlterableConfig(k.replace("_", "."), v) for k, v in config.items()],
        )

    return alter_configs.Request(
        [
            resource(TOPIC, "plain-2", segment_bytes="2000000"),
            resource(TOPIC, "plain-3", retention_ms="soon"),
            resource(TOPIC, "no-such-topic", retention_ms="5"),
            resource(99, "1", retention_ms="5"),
        ]
    )


@step("DescribeConfigs of what was altered", [4])
def _(_: World, version: int) -> Any:  # noqa: ANN401
    keys = ["retention.ms", "segment.bytes", "cleanup.policy"]
    return describe_configs.Request(
        [
            describe_configs.DescribeConfigsResource(TOPIC, name, keys)
            for name in ("plain-2", "plain-3", "plain-4", "plain-5", "log")
        ]
    )


# Bytes that are no request. What is recorded is only whether the connection was closed.


def frame(key: int, version: int, rest: bytes, client_id: bytes | None = b"c") -> bytes:
    name = struct.pack(">h", -1 if client_id is None else len(client_id)) + (client_id or b"")
    body = struct.pack(">hhi", key, version, 1) + name + rest
    return struct.pack(">i", len(body)) + body


RAW: dict[str, bytes] = {
    "a negative size": struct.pack(">i", -1),
    "a size of zero": struct.pack(">i", 0),
    "a size above the limit": struct.pack(">i", 104_857_601),
    "a frame too short for a header": struct.pack(">i", 4) + b"\0\3\0\0",
    "an API key that does not exist": frame(500, 0, b""),
    "an API key below zero": frame(-1, 0, b""),
    "an API of the controller": frame(52, 0, b"\0\0"),
    "an API from the time of ZooKeeper": frame(4, 0, b""),
    "Produce v2, which is advertised but gone": frame(0, 2, b"\0\1\0\0\0\1\0\0\0\0"),
    "Fetch v3": frame(1, 3, b"\0" * 20),
    "Metadata in a version that does not exist": frame(3, 99, b""),
    "a version below zero": frame(3, -1, b"\0\0\0\0"),
    "ApiVersions in a version that does not exist": frame(18, 99, b"\0\1\2\3"),
    "a null client id": frame(3, 1, b"\0\0\0\0", client_id=None),
    "a client id longer than its frame": struct.pack(">ihhih", 12, 3, 1, 1, 500) + b"ab",
    "bytes after the body": frame(3, 1, b"\0\0\0\0trailing"),
    "a body that ends too early": frame(3, 1, struct.pack(">i", 5)),
    "an array of two thousand million": frame(3, 1, struct.pack(">i", 2**31 - 1)),
    "a string longer than its frame": frame(3, 1, struct.pack(">ih", 1, 30_000) + b"ab"),
    "a string that is null and must not be": frame(3, 1, struct.pack(">ih", 1, -1)),
    "a compact array of four thousand million": frame(3, 9, b"\0\xff\xff\xff\xff\x0f\0\0\0"),
    "a varint of six bytes": frame(3, 9, b"\0\xff\xff\xff\xff\xff\1\0\0\0"),
    "a tag longer than its frame": frame(3, 9, b"\0\1\1\0\0\1\0\xff\x7f"),
    "text that is not UTF-8": frame(3, 1, struct.pack(">ih", 1, 2) + b"\xff\xfe"),
}
