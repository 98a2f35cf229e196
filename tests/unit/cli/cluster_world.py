"""A fake cluster of three brokers for what the tools show of a cluster."""

from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.messages import (
    describe_cluster,
    describe_configs,
    describe_log_dirs,
    describe_quorum,
    list_partition_reassignments,
    metadata,
)
from tests.unit.client.fake_broker import World

ONGOING = list_partition_reassignments.OngoingPartitionReassignment(0, [1, 2, 4], [4], [2])


class ClusterWorld(World):
    """Brokers 1 and 2 run, 3 is fenced; all requests are answered by broker 1."""

    def __init__(self) -> None:
        super().__init__()
        self.replicas: dict[int, list[int]] = {0: [1, 2], 1: [2, 1], 2: [3, 1]}
        self.isr = {0: [1, 2], 1: [2], 2: [1]}
        self.moves = [ONGOING]
        self.flags = {"ottla.drained": "false", "ottla.rebalance.enable": "true"}
        broker = self.broker
        for key in (ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_QUORUM):
            broker.ranges[key] = request_class(key).VERSIONS
        broker.always[ApiKey.METADATA] = self._metadata
        broker.always[ApiKey.DESCRIBE_CLUSTER] = self._cluster
        broker.always[ApiKey.DESCRIBE_LOG_DIRS] = self._log_dirs
        broker.always[ApiKey.DESCRIBE_QUORUM] = self._quorum
        broker.always[ApiKey.DESCRIBE_CONFIGS] = self._configs
        broker.always[ApiKey.LIST_PARTITION_REASSIGNMENTS] = self._reassignments

    def _metadata(self, request: metadata.Request, version: int) -> metadata.Response:
        partitions = [
            metadata.MetadataResponsePartition(
                0, index, self.isr[index][0] if self.isr[index] else -1, 0, nodes, self.isr[index]
            )
            for index, nodes in self.replicas.items()
        ]
        topic = metadata.MetadataResponseTopic(0, "t", b"t" * 16, partitions=partitions)
        return metadata.Response(
            brokers=[metadata.MetadataResponseBroker(n, "broker1", 9092) for n in (1, 2)],
            cluster_id="c",
            controller_id=1,
            topics=[topic] if request.topics is None or request.topics else [],
        )

    def _cluster(
        self, request: describe_cluster.Request, version: int
    ) -> describe_cluster.Response:
        item = describe_cluster.DescribeClusterBroker
        return describe_cluster.Response(
            cluster_id="c",
            controller_id=2,
            brokers=[
                item(3, "c", 9092, None, True),
                item(1, "a", 9092, "rack"),
                item(2, "b", 9092, "rack"),
            ],
        )

    def _log_dirs(
        self, request: describe_log_dirs.Request, version: int
    ) -> describe_log_dirs.Response:
        held = [describe_log_dirs.DescribeLogDirsPartition(0, 1500)]
        found = describe_log_dirs.DescribeLogDirsTopic("t", held)
        directory = describe_log_dirs.DescribeLogDirsResult
        return describe_log_dirs.Response(
            results=[directory(0, "/data", [found], 10_000, 9_000), directory(56, "/bad")]
        )

    def _quorum(self, request: describe_quorum.Request, version: int) -> describe_quorum.Response:
        replica = describe_quorum.ReplicaState
        partition = describe_quorum.ResponsePartitionData(
            0,
            leader_id=1,
            leader_epoch=7,
            high_watermark=98,
            current_voters=[
                replica(1, log_end_offset=100),
                replica(2, log_end_offset=90, last_caught_up_timestamp=self.clock.wall() - 1500),
            ],
            observers=[replica(5, log_end_offset=-1)],
        )
        topics = [describe_quorum.ResponseTopicData("__cluster_metadata", [partition])]
        return describe_quorum.Response(topics=topics)

    def _configs(
        self, request: describe_configs.Request, version: int
    ) -> describe_configs.Response:
        (resource,) = request.resources
        found = [
            describe_configs.DescribeConfigsResourceResult(name, self.flags[name])
            for name in resource.configuration_keys or ()
            if name in self.flags
        ]
        return describe_configs.Response(0, [describe_configs.DescribeConfigsResult(configs=found)])

    def _reassignments(
        self, request: list_partition_reassignments.Request, version: int
    ) -> list_partition_reassignments.Response:
        topic = list_partition_reassignments.OngoingTopicReassignment("t", self.moves)
        return list_partition_reassignments.Response(topics=[topic] if self.moves else [])
