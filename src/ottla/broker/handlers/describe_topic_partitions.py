"""DescribeTopicPartitions (api key 75), version 0: partitions of topics, page by page.

A page ends at the smaller of what the client and `max.request.partition.size.limit` allow; the
cursor says where the next one begins. Topics come in the order of their names.
"""

from ottla.broker import cluster_view
from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles, send
from ottla.broker.server import Broker
from ottla.metadata.cluster import INTERNAL_TOPICS, NO_LEADER, Partition
from ottla.metadata.image import ClusterImage
from ottla.metadata.topic_names import fault_of
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import describe_topic_partitions as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    image, listener = broker.image, reply.connection.listener
    names = _names(request, image)
    limit = min(broker.settings.max_request_partition_size_limit, request.response_partition_limit)
    remaining = max(limit, 1)
    response = wire.Response()
    for name in names:
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
    send(reply, response)


def _names(request: wire.Request, image: ClusterImage) -> list[str]:
    """The topics from the cursor on, sorted."""
    cursor = request.cursor
    asked = {topic.name for topic in request.topics} or set(image.topics_by_name)
    if cursor is not None:
        asked = {name for name in asked if name >= cursor.topic_name}
        if request.topics and cursor.topic_name not in asked:
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
    result.partitions = [
        _partition(index, topic.partitions[index], image, listener) for index in range(start, end)
    ]
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
