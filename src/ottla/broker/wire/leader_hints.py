"""Who leads now, in the answers of one that does not any more (KIP-951).

A client that is told so need not ask for metadata before it goes on elsewhere.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from ottla.broker.wire import cluster_view
from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.codec import decode_from, encode_into
from ottla.protocol.messages import produce

HINTED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
PRODUCE_SINCE: Final = 10
FETCH_SINCE: Final = 16
_FRAME_START: Final = Struct(">ii")
_BODY_AT: Final = 9  # Behind size, correlation id and the header's tags.


class LeaderAndEpoch(NamedTuple):
    leader: NodeId
    epoch: int


class Where(NamedTuple):
    """A node and where this client reaches it."""

    node: NodeId
    host: str
    port: int
    rack: str | None


def leader_of(
    image: ClusterImage, topic: str, topic_id: bytes, index: int
) -> LeaderAndEpoch | None:
    known = image.topics_by_name.get(topic) if topic else image.topics_by_id.get(topic_id)
    partition = known.partitions.get(index) if known is not None else None
    return LeaderAndEpoch(partition.leader, partition.leader_epoch) if partition else None


def whereabouts(image: ClusterImage, nodes: Iterable[NodeId], listener: str) -> list[Where]:
    """Of those that take requests."""
    return [
        Where(node, endpoint.host, endpoint.port, image.brokers[node].rack)
        for node in dict.fromkeys(nodes)
        if cluster_view.is_alive(image, node, listener)
        and (endpoint := image.brokers[node].endpoints.get(listener)) is not None
    ]


def add_leaders(response: produce.Response, image: ClusterImage, listener: str) -> None:
    leaders = []
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code not in HINTED:
                continue
            found = leader_of(image, topic.name, topic.topic_id, result.index)
            if found is not None:
                result.current_leader = produce.LeaderIdAndEpoch(*found)
                leaders.append(found.leader)
    response.node_endpoints = [
        produce.NodeEndpoint(*where) for where in whereabouts(image, leaders, listener)
    ]


def with_leaders(answer: bytes, version: int, image: ClusterImage, listener: str) -> bytes:
    """The same for a whole frame that was made without them."""
    response, _ = decode_from(produce.Response, memoryview(answer), _BODY_AT, version)
    add_leaders(response, image, listener)
    frame = bytearray(answer[:_BODY_AT])
    encode_into(response, version, frame)
    _, correlation_id = _FRAME_START.unpack_from(frame)
    _FRAME_START.pack_into(frame, 0, len(frame) - 4, correlation_id)
    return bytes(frame)
