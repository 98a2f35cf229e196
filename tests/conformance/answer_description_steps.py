"""Steps about offsets, metadata and descriptions."""

from typing import Any

from ottla.protocol.messages import (
    api_versions,
    delete_records,
    describe_cluster,
    describe_log_dirs,
    describe_quorum,
    describe_topic_partitions,
    list_offsets,
    metadata,
    offset_for_leader_epoch,
)
from tests.conformance import answer_batches as batches
from tests.conformance.answer_step import Steps
from tests.conformance.answer_world import NO_SUCH_ID, World

STEPS = Steps()
step = STEPS.add


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


@step("DescribeQuorum", range(3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    asked = describe_quorum.RequestTopicData(
        "__cluster_metadata", [describe_quorum.RequestPartitionData(0)]
    )
    return describe_quorum.Request([asked])


@step("DescribeQuorum of another topic", range(3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    asked = describe_quorum.RequestTopicData("log", [describe_quorum.RequestPartitionData(0)])
    return describe_quorum.Request([asked])


@step("DescribeQuorum of another partition", range(3))
def _(_: World, version: int) -> Any:  # noqa: ANN401
    asked = describe_quorum.RequestTopicData(
        "__cluster_metadata", [describe_quorum.RequestPartitionData(1)]
    )
    return describe_quorum.Request([asked])
