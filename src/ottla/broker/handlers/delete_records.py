"""DeleteRecords (api key 21), versions 0 to 2: raise the start of a partition's log.

The records go out of reach at once; their bytes go when a whole segment lies below the new start.
The answer waits until every replica that lives has followed, or says REQUEST_TIMED_OUT: what was
deleted is deleted all the same.
"""

from asyncio import TimerHandle
from typing import Final

from ottla.broker.handlers.context import PartitionContext
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, Offset
from ottla.protocol.messages import delete_records as wire
from ottla.storage.directory import LogDirectory

TO_HIGH_WATERMARK: Final = -1


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: PartitionContext) -> None:
    answer = _Answer(reply)
    to_write: dict[LogDirectory, list[wire.DeleteRecordsPartitionResult]] = {}
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            result = wire.DeleteRecordsPartitionResult(part.partition_index, low_watermark=-1)
            results.append(result)
            try:
                partition = broker.partitions.led(topic.name, ZERO_UUID, part.partition_index)
                offset = _delete(partition, part.offset)
            except Refusal as refusal:
                result.error_code = refusal.code
                continue
            if offset > partition.log.oldest_offset:
                # Also when it was deleted before, for writing that down may have failed.
                to_write.setdefault(broker.directories.of(partition.log), []).append(result)
            result.low_watermark = partition.low_watermark
            if result.low_watermark < offset:
                assert isinstance(partition, ReplicatedPartition), "somebody follows it"
                answer.waiting.add(_Waiting(answer, partition, offset, result))
        answer.response.topics.append(wire.DeleteRecordsTopicResult(topic.name, results))
    if answer.waiting:
        answer.timer = broker.call_later(max(request.timeout_ms, 0), answer.timed_out)
    answer.writing = len(to_write)
    for directory, written in to_write.items():
        broker.spawn(_write_down(broker, directory, written, answer))
    answer.send_if_done()


def _delete(partition: Partition, offset: Offset) -> Offset:
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
    return offset


async def _write_down(
    broker: PartitionContext,
    directory: LogDirectory,
    results: list[wire.DeleteRecordsPartitionResult],
    answer: "_Answer",
) -> None:
    """Write where logs begin before that is answered: what was deleted must not come back."""
    try:
        await broker.partitions.checkpoints.write(directory)
    except Refusal as refusal:
        for result in results:
            result.error_code, result.low_watermark = refusal.code, -1
    answer.writing -= 1
    answer.send_if_done()


class _Answer:
    def __init__(self, reply: Reply) -> None:
        self.response = wire.Response()
        self.waiting: set[_Waiting] = set()
        self.writing = 0  # Log directories whose checkpoint is being written.
        self.timer: TimerHandle | None = None
        self._reply = reply

    def send_if_done(self) -> None:
        if self.waiting or self.writing:
            return
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
        self._answer.send_if_done()
