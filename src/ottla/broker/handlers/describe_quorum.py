"""DescribeQuorum (api key 55), versions 0 to 2: who leads the metadata log, and who follows it.

v1  timestamps of the replicas     v2  error messages, directory ids, addresses of the voters
"""

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles, send
from ottla.broker.server import Broker
from ottla.metadata.cluster import METADATA_TOPIC
from ottla.model.errors import ErrorCode
from ottla.model.types import ZERO_UUID
from ottla.protocol.messages import describe_quorum as wire

NODES_SINCE = 2
UNKNOWN = "This server does not host this topic-partition."


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    asked = [(t.topic_name, [p.partition_index for p in t.partitions]) for t in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        send(reply, _unknown(request))
        return
    topic = wire.ResponseTopicData(METADATA_TOPIC, [_partition(broker, reply.version)])
    response = wire.Response(topics=[topic])
    if reply.version >= NODES_SINCE:
        response.nodes = _nodes(broker)
    send(reply, response)


def _nodes(broker: Broker) -> list[wire.Node]:
    return [
        wire.Node(
            voter.id,
            [
                wire.Listener(name, where.host, where.port)
                for name, where in voter.endpoints.items()
            ],
        )
        for voter in broker.quorum.log.quorum.voters.by_id.values()
    ]


def _partition(broker: Broker, version: int) -> wire.ResponsePartitionData:
    driver, now = broker.quorum, broker.env.clock.wall()
    quorum = driver.log.quorum
    return wire.ResponsePartitionData(
        partition_index=0,
        leader_id=quorum.state.leader,
        leader_epoch=quorum.state.epoch,
        high_watermark=driver.high_watermark,
        current_voters=[
            wire.ReplicaState(
                replica_id=voter.id,
                replica_directory_id=voter.directory_id if version > 1 else ZERO_UUID,
                log_end_offset=driver.log.end_offset,
                # A leader has always just fetched from itself.
                last_fetch_timestamp=now,
                last_caught_up_timestamp=now,
            )
            for voter in quorum.voters.by_id.values()
        ],
    )


def _unknown(request: wire.Request) -> wire.Response:
    return wire.Response(
        topics=[
            wire.ResponseTopicData(
                topic.topic_name,
                [
                    wire.ResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                        error_message=UNKNOWN,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
