"""Produce (api key 0), versions 3 to 13.

    v3  record batches of magic 2      v5   log_start_offset in the answer
    v7  zstd allowed                   v8   record_errors and error_message per partition
    v9  flexible encoding              v10  where the leader is, in the answer
    v13 topics by id

Versions 0 to 2 are in ApiVersions because old librdkafka looks there for its codecs, and are
refused when sent. `handle` is the reference; `raw_handler` gives the same for the request that
nearly every client sends: one topic, one partition.
"""

from asyncio import TimerHandle

from ottla.broker.connection import Reply
from ottla.broker.dispatch import RawHandler, handles, send
from ottla.broker.leader_hints import PRODUCE_SINCE, add_leaders
from ottla.broker.partition import Partition
from ottla.broker.server import Broker
from ottla.metadata.cluster import INTERNAL_TOPICS
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol.messages import produce as wire
from ottla.protocol.varint import Buffer
from ottla.records.admission import admit
from ottla.records.inspection import InvalidRecords

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
ADMIN_CLIENT = "__admin_client"  # How Kafka's own tools call themselves.


class Waiting:
    """A produce request whose batches are being appended; answers when the last one is settled."""

    __slots__ = ("_broker", "_open", "_reply", "_response", "acks", "is_slow", "timer")

    def __init__(self, reply: Reply, acks: int, response: wire.Response, broker: Broker) -> None:
        self._broker = broker
        self._reply = reply
        self.acks = acks
        self._response = response
        self._open = 1  # The handler itself, until it has gone through all partitions.
        self.is_slow = False
        self.timer: TimerHandle | None = None

    def opened(self, is_slow: bool) -> None:
        """One more is waited for; a slow one perhaps for longer than this turn."""
        self._open += 1
        self.is_slow |= is_slow

    def settled(self) -> None:
        self._open -= 1
        if self._open == 0 and self._reply.pieces is None:
            self._answer()

    def timed_out(self) -> None:
        """Whatever is still open is answered as timed out, though it may yet be committed."""
        if self._open and self._reply.pieces is None:
            for topic in self._response.responses:
                for result in topic.partition_responses:
                    if result.error_code == _OPEN:
                        _fail(result, ErrorCode.REQUEST_TIMED_OUT, None)
            self._answer()

    def _answer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.acks != ACKS_NONE:
            if self._reply.version >= PRODUCE_SINCE:
                add_leaders(self._response, self._broker.image, self._reply.connection.listener)
            send(self._reply, self._response)
            return
        self._reply.complete(())
        results = [r for topic in self._response.responses for r in topic.partition_responses]
        if any(result.error_code for result in results):
            # The client reads no answer, so an error can only close the connection.
            self._reply.connection.close()


_OPEN = -2  # Not an error code: this partition's append is not settled yet.


class _Append:
    """One partition of a request; hears of its batch's end."""

    __slots__ = ("_result", "_waiting", "acks_all")

    def __init__(
        self, waiting: Waiting, result: wire.PartitionProduceResponse, is_slow: bool
    ) -> None:
        self._waiting = waiting
        self.acks_all = waiting.acks == ACKS_ALL
        self._result = result
        result.error_code = _OPEN
        waiting.opened(is_slow)

    def appended(self, partition: Partition) -> None:
        self._result.error_code = ErrorCode.NONE
        self._result.log_start_offset = partition.log.log_start_offset
        self._waiting.settled()

    def failed(self, _partition: Partition, code: ErrorCode) -> None:
        self.refused(code, None)

    def refused(self, code: ErrorCode, message: str | None) -> None:
        _fail(self._result, code, message)
        self._waiting.settled()


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    """Append every batch in order; answer when all are as safe as `acks` asks."""
    if reply.version < 3:
        raise ProtocolError(f"PRODUCE version {reply.version} is not served")
    response = wire.Response()
    waiting = Waiting(reply, request.acks, response, broker)
    for topic in request.topic_data:
        results = []
        for part in topic.partition_data:
            result = wire.PartitionProduceResponse(index=part.index)
            results.append(result)
            try:
                if request.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
                    raise Refusal(ErrorCode.INVALID_REQUIRED_ACKS)
                partition = broker.partitions.led(topic.name, topic.topic_id, part.index)
                if partition.name.topic in INTERNAL_TOPICS and reply.client_id != ADMIN_CLIENT:
                    message = f"Cannot append to internal topic {partition.name.topic}"
                    raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
                _append(broker, partition, part.records, waiting, result, reply.version)
            except Refusal as refusal:
                _fail(result, refusal.code, refusal.message)
                if isinstance(refusal, InvalidRecords):
                    result.record_errors = [
                        wire.BatchIndexAndErrorMessage(index, message)
                        for index, message in refusal.record_errors
                    ]
        response.responses.append(
            wire.TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=results
            )
        )
    if request.acks == ACKS_ALL and waiting.is_slow:
        waiting.timer = broker.call_later(request.timeout_ms, waiting.timed_out)
    waiting.settled()


def raw_handler(broker: Broker) -> RawHandler:
    return broker.prepared_produces.serve


def _append(
    broker: Broker,
    partition: Partition,
    records: Buffer | None,
    waiting: Waiting,
    result: wire.PartitionProduceResponse,
    version: int,
) -> None:
    broker.partitions.check_writable(partition)
    if waiting.acks == ACKS_ALL:
        partition.check_enough_replicas()
    # The frame's buffer is used again for the next one: the log gets bytes of its own.
    batch = admit(bytearray(records or b""), partition.policy, broker.env.clock.wall(), version)
    broker.metrics.bytes_in += batch.size
    appending = _Append(waiting, result, partition.is_slow)
    try:
        result.base_offset, result.log_append_time_ms = partition.append(batch, appending)
    except Refusal as refusal:
        appending.refused(refusal.code, refusal.message)


def _fail(result: wire.PartitionProduceResponse, code: ErrorCode, message: str | None) -> None:
    result.error_code, result.error_message = code, message
    result.base_offset = result.log_append_time_ms = result.log_start_offset = -1
