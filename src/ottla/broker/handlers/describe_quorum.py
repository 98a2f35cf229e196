"""DescribeQuorum (api key 55), versions 0 to 2: who leads the metadata log, and who follows it.

v1  timestamps of the replicas     v2  error messages, directory ids, addresses of the voters

Only the leader knows: others ask it.
"""

from ottla.broker.handlers.context import QuorumContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.metadata.image.cluster import METADATA_TOPIC
from ottla.model.errors import ErrorCode
from ottla.model.types import ZERO_UUID, Monotonic, NodeId, WallTime
from ottla.protocol.messages import describe_quorum as wire
from ottla.quorum.leadership import Leader, Replica

NODES_SINCE = 2
UNKNOWN = "This server does not host this topic-partition."


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: QuorumContext) -> wire.Response:
    asked = [(t.topic_name, [p.partition_index for p in t.partitions]) for t in request.topics]
    if asked != [(METADATA_TOPIC, [0])]:
        return _refused(request, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN)
    while not isinstance(leader := broker.quorum.quorum.role, Leader):
        if reply.connection.listener in broker.settings.controller_listener_names:
            return _refused(request, ErrorCode.NOT_LEADER_OR_FOLLOWER, None)
        if (response := await _elsewhere(request, reply, broker)) is not None:
            return response
    topic = wire.ResponseTopicData(METADATA_TOPIC, [_partition(broker, leader, reply.version)])
    response = wire.Response(topics=[topic])
    if reply.version >= NODES_SINCE:
        response.nodes = _nodes(broker)
    return response


async def _elsewhere(
    request: wire.Request, reply: Reply, broker: QuorumContext
) -> wire.Response | None:
    """The leader's response; None if this node leads by now."""
    response: wire.Response | None = await broker.quorum.requests.channel.ask(
        request, lambda: broker.quorum.quorum.is_leader, origin=reply.origin
    )
    if response is not None and reply.version < NODES_SINCE:
        response.nodes = []
        for part in (part for topic in response.topics for part in topic.partitions):
            for replica in (*part.current_voters, *part.observers):
                replica.replica_directory_id = ZERO_UUID
    return response


def _nodes(broker: QuorumContext) -> list[wire.Node]:
    return [
        wire.Node(
            voter.id,
            [
                wire.Listener(name, where.host, where.port)
                for name, where in voter.endpoints.items()
            ],
        )
        for voter in broker.quorum.quorum.voters.by_id.values()
    ]


def _partition(broker: QuorumContext, leader: Leader, version: int) -> wire.ResponsePartitionData:
    driver = broker.quorum
    wall, monotonic = broker.env.clock.wall(), broker.env.clock.monotonic()
    voters = driver.quorum.voters

    def state(node: NodeId, directory_id: bytes, replica: Replica) -> wire.ReplicaState:
        is_us = node == driver.identity.node_id
        return wire.ReplicaState(
            replica_id=node,
            replica_directory_id=directory_id if version >= NODES_SINCE else ZERO_UUID,
            log_end_offset=driver.log.end_offset if is_us else replica.end,
            # A leader has always just fetched from itself.
            last_fetch_timestamp=wall if is_us else _as_wall(replica.fetched_at, wall, monotonic),
            last_caught_up_timestamp=wall
            if is_us
            else _as_wall(replica.caught_up_at, wall, monotonic),
        )

    high_watermark = driver.quorum.high_watermark
    return wire.ResponsePartitionData(
        partition_index=0,
        leader_id=driver.quorum.leadership.leader,
        leader_epoch=driver.quorum.leadership.epoch,
        high_watermark=-1 if high_watermark is None else high_watermark,
        current_voters=[
            state(voter.id, voter.directory_id, leader.replica_of(voter.id, voters))
            for voter in voters.by_id.values()
        ],
        observers=[
            state(key.id, key.directory_id, replica)
            for key, replica in sorted(leader.replicas.items())
            if voters.voter(key) is None
        ],
    )


def _as_wall(moment: Monotonic | None, wall: WallTime, monotonic: Monotonic) -> int:
    return -1 if moment is None else wall - (monotonic - moment)


def _refused(request: wire.Request, code: ErrorCode, message: str | None) -> wire.Response:
    return wire.Response(
        topics=[
            wire.ResponseTopicData(
                topic.topic_name,
                [
                    wire.ResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=code,
                        error_message=message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
