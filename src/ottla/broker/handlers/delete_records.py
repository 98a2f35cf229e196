"""DeleteRecords (api key 21), versions 0 to 2: raise the start of a partition's log.

The records go out of reach at once; their bytes go when a whole segment lies below the new start.
"""

from typing import Final

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles, send
from ottla.broker.partition import Partition
from ottla.broker.server import Broker
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, Offset
from ottla.protocol.messages import delete_records as wire

TO_HIGH_WATERMARK: Final = -1


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    topics = []
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            result = wire.DeleteRecordsPartitionResult(part.partition_index, low_watermark=-1)
            try:
                partition = broker.partitions.led(topic.name, ZERO_UUID, part.partition_index)
                result.low_watermark = _delete(broker, partition, part.offset)
            except Refusal as refusal:
                result.error_code = refusal.code
            results.append(result)
        topics.append(wire.DeleteRecordsTopicResult(topic.name, results))
    send(reply, wire.Response(topics=topics))


def _delete(broker: Broker, partition: Partition, offset: Offset) -> Offset:
    log = partition.log
    if not log.config.is_deleted:
        raise Refusal(ErrorCode.POLICY_VIOLATION, "only topics with cleanup.policy=delete")
    if offset == TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
    if offset > log.log_start_offset:
        log.advance_log_start(offset)
    if offset > log.segments[0].base_offset:
        # Written down before it is answered: what was deleted must not come back. Also when it was
        # deleted before, for that may have failed here.
        broker.directories.write_down(log, broker.partitions.high_watermarks())
    return log.log_start_offset
