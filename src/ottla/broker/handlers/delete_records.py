"""DeleteRecords (api key 21), versions 0 to 2: raise the start of a partition's log.

The records go out of reach at once; their bytes go when a whole segment lies below the new start.
The answer waits until every replica that lives has followed, or says REQUEST_TIMED_OUT: what was
deleted is deleted all the same.
"""

from asyncio import TimerHandle
from typing import Final

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles, send
from ottla.broker.partition import Partition
from ottla.broker.replicated_partition import ReplicatedPartition
from ottla.broker.server import Broker
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, Offset
from ottla.protocol.messages import delete_records as wire

TO_HIGH_WATERMARK: Final = -1


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    answer = _Answer(reply)
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            result = wire.DeleteRecordsPartitionResult(part.partition_index, low_watermark=-1)
            try:
                partition = broker.partitions.led(topic.name, ZERO_UUID, part.partition_index)
                offset = _delete(broker, partition, part.offset)
                result.low_watermark = partition.low_watermark
            except Refusal as refusal:
                result.error_code = refusal.code
            else:
                if result.low_watermark < offset:
                    assert isinstance(partition, ReplicatedPartition), "somebody follows it"
                    answer.waiting.add(_Waiting(answer, partition, offset, result))
            results.append(result)
        answer.response.topics.append(wire.DeleteRecordsTopicResult(topic.name, results))
    if answer.waiting:
        answer.timer = broker.call_later(max(request.timeout_ms, 0), answer.timed_out)
    else:
        answer.send()


def _delete(broker: Broker, partition: Partition, offset: Offset) -> Offset:
    """The offset below which nothing is to be left."""
    log = partition.log
    if not log.config.is_deleted:
        raise Refusal(ErrorCode.POLICY_VIOLATION, "only topics with cleanup.policy=delete")
    if offset == TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
    if offset > log.log_start_offset:
        log.advance_log_start(offset)
        partition.log_start_moved()
    if offset > log.segments[0].base_offset:
        # Written down before it is answered: what was deleted must not come back. Also when it was
        # deleted before, for that may have failed here.
        broker.directories.write_down(log, broker.partitions.high_watermarks())
    return offset


class _Answer:
    def __init__(self, reply: Reply) -> None:
        self.response = wire.Response()
        self.waiting: set[_Waiting] = set()
        self.timer: TimerHandle | None = None
        self._reply = reply

    def send(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        send(self._reply, self.response)

    def timed_out(self) -> None:
        for waiting in list(self.waiting):
            waiting.failed(ErrorCode.REQUEST_TIMED_OUT)


class _Waiting:
    """For the replicas of one partition."""

    def __init__(
        self,
        answer: _Answer,
        partition: ReplicatedPartition,
        offset: Offset,
        result: wire.DeleteRecordsPartitionResult,
    ) -> None:
        self._answer = answer
        self._partition = partition
        self._offset = offset
        self._result = result
        partition.deletions[self] = None

    def low_watermark_moved(self, low_watermark: Offset) -> None:
        if low_watermark >= self._offset:
            self._result.low_watermark = low_watermark
            self._done()

    def failed(self, code: ErrorCode) -> None:
        self._result.error_code = code
        if code != ErrorCode.REQUEST_TIMED_OUT:
            self._result.low_watermark = -1
        self._done()

    def _done(self) -> None:
        self._partition.deletions.pop(self, None)
        self._answer.waiting.discard(self)
        if not self._answer.waiting:
            self._answer.send()
