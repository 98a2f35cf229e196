"""DescribeTopicPartitions (api key 75), version 0: partitions of topics, page by page.

A page ends at the smaller of what the client and `max.request.partition.size.limit` allow; the
cursor says where the next one begins. Topics come in the order of their names. A page costs by its
partitions, and by the topics that have to be sorted for it (`responses.respond`).
"""

from collections.abc import Iterable
from typing import Any, Final

from ottla.broker.wire import cluster_view
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import Lazy, TurnContext, respond
from ottla.metadata.image.cluster import INTERNAL_TOPICS, NO_LEADER, Partition
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.topic_names import fault_of
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import describe_topic_partitions as wire

SORTED_PER_ELEMENT: Final = 8  # Names that are sorted while one partition is described.


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: TurnContext) -> None:
    _check(request)
    by_name = broker.image.topics_by_name
    limit = min(broker.settings.max_request_partition_size_limit, request.response_partition_limit)
    count = max(limit, 1)
    elements = min(count, _partitions(request, broker.image, count))
    elements += (len(request.topics) or len(by_name)) // SORTED_PER_ELEMENT
    respond(reply, lambda: _response(request, reply, broker, count), elements, broker)


def _partitions(request: wire.Request, image: ClusterImage, enough: int) -> int:
    """How many there are of the topics that are asked for; no more than enough are counted."""
    names: Iterable[str] = {topic.name for topic in request.topics} or image.topics_by_name
    found = 0
    for name in names:
        topic = image.topics_by_name.get(name)
        found += len(topic.partitions) if topic is not None else 1
        if found >= enough:
            break
    return found


def _response(
    request: wire.Request, reply: Reply, broker: TurnContext, remaining: int
) -> wire.Response:
    image, listener = broker.image, reply.connection.listener
    response = wire.Response()
    for name in _names(request, image):
        if remaining == 0:
            response.next_cursor = wire.Cursor(name, 0)
            break
        cursor = request.cursor
        start = cursor.partition_index if cursor and cursor.topic_name == name else 0
        page, next_index = _page(image, name, start, remaining, listener)
        response.topics.append(page)
        if next_index is not None:
            response.next_cursor = wire.Cursor(name, next_index)
            break
        remaining -= len(page.partitions)
    return response


def _check(request: wire.Request) -> None:
    cursor = request.cursor
    if cursor is None:
        return
    if request.topics and all(topic.name != cursor.topic_name for topic in request.topics):
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest topic list should contain the cursor topic: "
            f"{cursor.topic_name}",
        )
    if cursor.partition_index < 0:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "DescribeTopicPartitionsRequest cursor partition must be valid: "
            f"{cursor.partition_index}",
        )


def _names(request: wire.Request, image: ClusterImage) -> list[str]:
    """The topics from the cursor on, sorted."""
    cursor = request.cursor
    asked = {topic.name for topic in request.topics} or set(image.topics_by_name)
    if cursor is not None:
        asked = {name for name in asked if name >= cursor.topic_name}
    return sorted(asked)


def _page(
    image: ClusterImage, name: str, start: int, count: int, listener: str
) -> tuple[wire.DescribeTopicPartitionsResponseTopic, int | None]:
    topic = image.topics_by_name.get(name)
    result = wire.DescribeTopicPartitionsResponseTopic(
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=cluster_view.TOPIC_OPERATIONS,
    )
    if topic is None:
        result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if fault_of(name):
            result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
        return result, None
    result.topic_id = topic.id
    end = min(len(topic.partitions), start + count)
    partitions: Any = Lazy(
        range(start, end),
        lambda index: _partition(index, topic.partitions[index], image, listener),
    )
    result.partitions = partitions
    return result, end if end < len(topic.partitions) else None


def _partition(
    index: int, partition: Partition, image: ClusterImage, listener: str
) -> wire.DescribeTopicPartitionsResponsePartition:
    is_led = cluster_view.is_alive(image, partition.leader, listener)
    return wire.DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=partition.leader if is_led else NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(map(int, partition.replicas)),
        isr_nodes=list(map(int, partition.isr)),
        eligible_leader_replicas=list(map(int, partition.elr)),
        last_known_elr=list(map(int, partition.last_known_elr)),
        offline_replicas=cluster_view.offline_replicas(image, partition, listener),
    )
