"""ListOffsets (api key 2), versions 1 to 11: an offset by time, or at either end of a log.

v2  isolation level     v4  leader epochs      v7  max timestamp (-3)
v8  earliest local (-4): nothing is tiered, so the log's start
v9  latest tiered (-5)  v11 earliest pending upload (-6): none
"""

from collections import Counter
from typing import Final

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles, send
from ottla.broker.partition import Partition
from ottla.broker.server import Broker
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, Offset
from ottla.protocol.messages import list_offsets as wire

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

SINCE: Final = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
READ_COMMITTED: Final = 1
NOT_FOUND: Final = (-1, -1, -1)

Found = tuple[int, Offset, int]  # Timestamp, offset, leader epoch.


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    asked = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    topics = []
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            result = wire.ListOffsetsPartitionResponse(part.partition_index)
            try:
                if asked[topic.name, part.partition_index] > 1:
                    raise Refusal(ErrorCode.INVALID_REQUEST)
                if reply.version < SINCE.get(part.timestamp, 1):
                    raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
                partition = broker.partitions.led(topic.name, ZERO_UUID, part.partition_index)
                partition.check_epoch(part.current_leader_epoch)
                is_replica = request.replica_id >= 0
                found = _find(partition, part.timestamp, request.isolation_level, is_replica)
                result.timestamp, result.offset, epoch = found
                if reply.version >= 4:  # Before that there is no place to say it.
                    result.leader_epoch = epoch
            except Refusal as refusal:
                result.error_code = refusal.code
            except (OSError, Damaged) as error:
                broker.partitions.read_failed(partition, error)
                result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            results.append(result)
        topics.append(wire.ListOffsetsTopicResponse(topic.name, results))
    send(reply, wire.Response(topics=topics))


def _find(partition: Partition, timestamp: int, isolation_level: int, is_replica: bool) -> Found:
    log = partition.log
    committed = isolation_level == READ_COMMITTED
    end = partition.last_stable_offset if committed else partition.high_watermark
    if is_replica:
        end = log.end_offset  # A follower has to know all that there is.
    elif timestamp in (LATEST, MAX_TIMESTAMP) and not partition.is_high_watermark_known:
        # KIP-207: rather say nothing than less than what the last leader said.
        raise Refusal(ErrorCode.OFFSET_NOT_AVAILABLE)
    if timestamp == LATEST:
        return -1, end, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset, log.epochs.epoch_of(log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    if timestamp < MAX_TIMESTAMP:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
    found = log.max_timestamp() if timestamp == MAX_TIMESTAMP else log.find_by_timestamp(timestamp)
    if found is None or found.offset >= end:
        return NOT_FOUND
    return found.timestamp, found.offset, found.leader_epoch
