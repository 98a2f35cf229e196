"""The quorum's requests and responses on Kafka's wire: one topic, one partition, around one thing.

Building them and taking them apart, so that the machine itself only sees what they say. A message
that is about another topic or partition is `Misplaced`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from ottla.model.errors import ErrorCode
from ottla.model.types import Millis, NodeId, Offset
from ottla.protocol.messages import begin_quorum_epoch as begin
from ottla.protocol.messages import end_quorum_epoch as end
from ottla.protocol.messages import fetch, fetch_snapshot, update_raft_voter, vote
from ottla.protocol.schema import fields_of
from ottla.quorum.log_view import TOPIC, TOPIC_ID, OffsetAndEpoch
from ottla.quorum.voters import Address, ReplicaKey

UNKNOWN_HIGH_WATERMARK: Final = (1 << 63) - 1
_Endpoint = TypeVar("_Endpoint")


class Misplaced(Exception):
    """The message is not about the one partition of the metadata log."""


class Leadership(NamedTuple):
    """Who leads which epoch, as far as the sender knows."""

    epoch: int
    leader: NodeId  # -1 if there is none yet.


def vote_request(
    cluster_id: str,
    epoch: int,
    candidate: ReplicaKey,
    voter: ReplicaKey,
    last: OffsetAndEpoch,
    *,
    pre_vote: bool,
) -> vote.Request:
    data = vote.RequestPartitionData(
        0, epoch, candidate.id, candidate.directory_id, voter.directory_id
    )
    data.last_offset_epoch, data.last_offset, data.pre_vote = last.epoch, last.offset, pre_vote
    return vote.Request(cluster_id, voter.id, [vote.RequestTopicData(TOPIC, [data])])


def vote_response(
    leadership: Leadership,
    endpoint: Address | None,
    *,
    granted: bool = False,
    error: ErrorCode = ErrorCode.NONE,
) -> vote.Response:
    data = vote.ResponsePartitionData(0, error, leadership.leader, leadership.epoch, granted)
    response = vote.Response(topics=[vote.ResponseTopicData(TOPIC, [data])])
    response.node_endpoints = _endpoints(vote.NodeEndpoint, leadership, endpoint)
    return response


def begin_request(
    cluster_id: str,
    leadership: Leadership,
    voter: ReplicaKey,
    endpoints: Mapping[str, Address],
) -> begin.Request:
    data = begin.RequestPartitionData(0, voter.directory_id, leadership.leader, leadership.epoch)
    where = [begin.LeaderEndpoint(name, *address) for name, address in endpoints.items()]
    return begin.Request(cluster_id, voter.id, [begin.RequestTopicData(TOPIC, [data])], where)


def begin_response(
    leadership: Leadership, endpoint: Address | None, error: ErrorCode = ErrorCode.NONE
) -> begin.Response:
    data = begin.ResponsePartitionData(0, error, leadership.leader, leadership.epoch)
    response = begin.Response(topics=[begin.ResponseTopicData(TOPIC, [data])])
    response.node_endpoints = _endpoints(begin.NodeEndpoint, leadership, endpoint)
    return response


def end_request(
    cluster_id: str,
    leadership: Leadership,
    successors: Iterable[ReplicaKey],
    endpoints: Mapping[str, Address],
) -> end.Request:
    """`successors` are the voters that should stand next, the most caught up first."""
    order = list(successors)
    data = end.RequestPartitionData(
        0,
        leadership.leader,
        leadership.epoch,
        [key.id for key in order],
        [end.ReplicaInfo(key.id, key.directory_id) for key in order],
    )
    where = [end.LeaderEndpoint(name, *address) for name, address in endpoints.items()]
    return end.Request(cluster_id, [end.RequestTopicData(TOPIC, [data])], where)


def end_response(
    leadership: Leadership, endpoint: Address | None, error: ErrorCode = ErrorCode.NONE
) -> end.Response:
    data = end.ResponsePartitionData(0, error, leadership.leader, leadership.epoch)
    response = end.Response(topics=[end.ResponseTopicData(TOPIC, [data])])
    response.node_endpoints = _endpoints(end.NodeEndpoint, leadership, endpoint)
    return response


def fetch_request(
    cluster_id: str,
    epoch: int,
    replica: ReplicaKey,
    place: OffsetAndEpoch,
    high_watermark: Offset | None,
    *,
    wait_ms: Millis,
    bytes_max: int,
) -> fetch.Request:
    part = fetch.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=place.offset,
        last_fetched_epoch=place.epoch,
        log_start_offset=-1,
        partition_max_bytes=bytes_max,
        replica_directory_id=replica.directory_id,
    )
    if high_watermark is not None:
        part.high_watermark = high_watermark
    return fetch.Request(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(replica.id, -1),
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=bytes_max,
        topics=[fetch.FetchTopic(TOPIC, TOPIC_ID, [part])],
    )


def fetch_response(
    leadership: Leadership,
    endpoint: Address | None,
    data: fetch.PartitionData | None = None,
    error: ErrorCode = ErrorCode.NONE,
) -> fetch.Response:
    part = data if data is not None else fetch.PartitionData(0, error, -1)
    part.current_leader = fetch.LeaderIdAndEpoch(leadership.leader, leadership.epoch)
    if part.records is None:
        part.records = b""
    response = fetch.Response(responses=[fetch.FetchableTopicResponse(TOPIC, TOPIC_ID, [part])])
    response.node_endpoints = _endpoints(fetch.NodeEndpoint, leadership, endpoint)
    return response


def snapshot_request(
    cluster_id: str,
    epoch: int,
    replica: ReplicaKey,
    snapshot: OffsetAndEpoch,
    position: int,
    bytes_max: int,
) -> fetch_snapshot.Request:
    part = fetch_snapshot.RequestPartitionSnapshot(
        0, epoch, fetch_snapshot.SnapshotId(*snapshot), position, replica.directory_id
    )
    topic = fetch_snapshot.RequestTopicSnapshot(TOPIC, [part])
    return fetch_snapshot.Request(cluster_id, replica.id, bytes_max, [topic])


def snapshot_response(
    leadership: Leadership,
    endpoint: Address | None,
    data: fetch_snapshot.ResponsePartitionSnapshot | None = None,
    error: ErrorCode = ErrorCode.NONE,
) -> fetch_snapshot.Response:
    part = data or fetch_snapshot.ResponsePartitionSnapshot(0, error)
    part.current_leader = fetch_snapshot.LeaderIdAndEpoch(leadership.leader, leadership.epoch)
    topic = fetch_snapshot.ResponseTopicSnapshot(TOPIC, [part])
    response = fetch_snapshot.Response(topics=[topic])
    response.node_endpoints = _endpoints(fetch_snapshot.NodeEndpoint, leadership, endpoint)
    return response


def partition_of(message: Any) -> Any:  # noqa: ANN401
    """The part of a request or response that is about the metadata log."""
    topics = message.responses if isinstance(message, fetch.Response) else message.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise Misplaced
    topic, part = topics[0], topics[0].partitions[0]
    name = next(getattr(topic, a) for a in ("topic_name", "topic", "name") if hasattr(topic, a))
    is_ours = name == TOPIC or getattr(topic, "topic_id", None) == TOPIC_ID
    index = next(
        getattr(part, a) for a in ("partition_index", "partition", "index") if hasattr(part, a)
    )
    if not is_ours or index != 0:
        raise Misplaced
    return part


def leadership_in(part: Any) -> Leadership:  # noqa: ANN401
    """Who leads, as a response's partition says it."""
    said = getattr(part, "current_leader", part)
    return Leadership(said.leader_epoch, NodeId(said.leader_id))


def address_in(response: Any, leader: NodeId) -> Address | None:  # noqa: ANN401
    """The leader's address, if the response contains it."""
    for node in getattr(response, "node_endpoints", ()):
        if node.node_id == leader:
            return Address(node.host, node.port)
    if isinstance(response, update_raft_voter.Response) and response.current_leader.host:
        return Address(response.current_leader.host, response.current_leader.port)
    return None


def _endpoints(
    kind: Callable[[int, str, int], _Endpoint], leadership: Leadership, endpoint: Address | None
) -> list[_Endpoint]:
    """The leader's address: the log of the node that asks may not contain it (KIP-853)."""
    if endpoint is None or leadership.leader < 0:
        return []
    return [kind(leadership.leader, endpoint.host, endpoint.port)]


def without_endpoints(response: Any, version: int) -> None:  # noqa: ANN401
    """Drop the leader's address from a response whose version has no place for it."""
    for field in fields_of(type(response)):
        if field.name == "node_endpoints" and not field.is_in(version):
            response.node_endpoints = []
