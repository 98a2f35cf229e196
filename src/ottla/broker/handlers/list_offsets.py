"""ListOffsets (api key 2), versions 1 to 11: an offset by time, or at either end of a log.

v2  isolation level     v4  leader epochs      v7  max timestamp (-3)
v8  earliest local (-4): nothing is tiered, so the log's start
v9  latest tiered (-5)  v11 earliest pending upload (-6): none

A search by time may read and unfold batches, so others are served between its steps.
"""

from collections import Counter
from typing import Final

from ottla.broker.handlers.context import PartitionContext
from ottla.broker.partitions.partition import Partition
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, Offset
from ottla.protocol.messages import list_offsets as wire
from ottla.storage.index import TimestampedOffset
from ottla.storage.lookup import MaxTimestampSearch, TimestampSearch

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

# What the answer for one partition, and a step of a search, take of a loop turn's budget.
PARTITION_US: Final = 10
SEARCH_STEP_US: Final = 1000

Found = tuple[int, Offset, int]  # Timestamp, offset, leader epoch.


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: PartitionContext) -> wire.Response:
    asked = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    topics = []
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            await broker.scans.budget.wait(PARTITION_US)
            result = wire.ListOffsetsPartitionResponse(part.partition_index)
            try:
                if asked[topic.name, part.partition_index] > 1:
                    raise Refusal(ErrorCode.INVALID_REQUEST)
                if reply.version < SINCE.get(part.timestamp, 1):
                    raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
                partition = broker.partitions.led(topic.name, ZERO_UUID, part.partition_index)
                partition.check_epoch(part.current_leader_epoch)
                found = await _find(broker, partition, part.timestamp, request)
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
    return wire.Response(topics=topics)


async def _find(
    broker: PartitionContext, partition: Partition, timestamp: int, request: wire.Request
) -> Found:
    is_replica = request.replica_id >= 0
    if (
        not is_replica  # A follower has to know all that there is.
        and timestamp in (LATEST, MAX_TIMESTAMP)
        and not partition.is_high_watermark_known
    ):
        # KIP-207: rather say nothing than less than what the last leader said.
        raise Refusal(ErrorCode.OFFSET_NOT_AVAILABLE)
    log = partition.log
    if timestamp == LATEST:
        return -1, _end(partition, request), partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start_offset, log.epochs.epoch_of(log.log_start_offset)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    if timestamp < MAX_TIMESTAMP:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
    found = await _search(broker, partition, timestamp)
    if found is None or found.offset >= _end(partition, request):
        return NOT_FOUND
    return found.timestamp, found.offset, found.leader_epoch


def _end(partition: Partition, request: wire.Request) -> Offset:
    """The offset up to which this client may see."""
    if request.replica_id >= 0:
        return partition.log.end_offset
    if request.isolation_level == READ_COMMITTED:
        return partition.last_stable_offset
    return partition.high_watermark


async def _search(
    broker: PartitionContext, partition: Partition, timestamp: int
) -> TimestampedOffset | None:
    """Raises NOT_LEADER_OR_FOLLOWER if the partition changes hands meanwhile."""
    leader_epoch = partition.leader_epoch
    bytes_max = broker.settings.ottla_record_decompressed_bytes_max
    search = (
        MaxTimestampSearch(partition.log, bytes_max)
        if timestamp == MAX_TIMESTAMP
        else TimestampSearch(partition.log, timestamp, bytes_max)
    )
    for scan in search.steps():
        if scan is not None:
            await broker.scans.run(scan)
        await broker.scans.budget.wait(SEARCH_STEP_US)
        name = partition.name
        led = broker.partitions.led(name.topic, partition.topic_id, name.partition)
        if led is not partition or led.leader_epoch != leader_epoch:
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return search.found
