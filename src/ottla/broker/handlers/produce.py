"""Produce (api key 0), versions 3 to 13.

    v3  record batches of magic 2      v5   log_start_offset in the answer
    v7  zstd allowed                   v8   record_errors and error_message per partition
    v9  flexible encoding              v10  where the leader is, in the answer
    v13 topics by id

Versions 0 to 2 are in ApiVersions because old librdkafka looks there for its codecs, and are
refused when sent. `handle` is the reference; `raw_handler` gives the same for the request that
nearly every client sends: one topic, one partition. A batch whose records take long to look at is
admitted by a worker; until then the rest of its request and of its connection waits.
"""

import logging
from asyncio import TimerHandle
from collections.abc import Callable
from typing import Final

from ottla.broker.partitions.partition import Partition
from ottla.broker.produce.context import ProduceContext
from ottla.broker.wire import memory
from ottla.broker.wire.apis import RawHandler, handles
from ottla.broker.wire.connection import Connection, Reply
from ottla.broker.wire.leader_hints import PRODUCE_SINCE, add_leaders
from ottla.broker.wire.responses import send
from ottla.metadata.image.cluster import INTERNAL_TOPICS
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.model.types import WallTime
from ottla.protocol.messages import produce as wire
from ottla.protocol.varint import Buffer
from ottla.records.admission import Admission, admit
from ottla.records.batch import Batch
from ottla.records.inspection import InvalidRecords
from ottla.records.scan import PLAIN_BYTES_PER_US

logger = logging.getLogger(__name__)

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
ADMIN_CLIENT = "__admin_client"  # How Kafka's own tools call themselves.
ENTRY_US: Final = 10


class Waiting:
    """A produce request whose batches are being appended; answers when the last one is settled."""

    __slots__ = ("_broker", "_open", "_reply", "_response", "acks", "is_slow", "timer")

    def __init__(
        self, reply: Reply, acks: int, response: wire.Response, broker: ProduceContext
    ) -> None:
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


class _Entry:
    """One partition of a request: its batch is admitted, perhaps by a worker, and appended."""

    __slots__ = ("_broker", "_index", "_reply", "_topic", "_waiting", "records", "result")

    def __init__(
        self,
        broker: ProduceContext,
        reply: Reply,
        waiting: Waiting,
        topic: wire.TopicProduceData,
        part: wire.PartitionProduceData,
    ) -> None:
        self._broker = broker
        self._reply = reply
        self._waiting = waiting
        self._topic = topic
        self._index = part.index
        self.records: Buffer = part.records or b""
        self.result = wire.PartitionProduceResponse(index=part.index)

    @property
    def cost_us(self) -> int:
        """What it takes of a loop turn's budget, without a look at its records."""
        return ENTRY_US + len(self.records) // PLAIN_BYTES_PER_US

    def begin(self) -> Admission | None:
        """Append the batch or refuse it; an Admission is to be finished before `end`."""
        try:
            partition = self._writable()
            # The frame's buffer is used again for the next one: the log gets bytes of its own.
            records = bytearray(self.records)
            budget = self._broker.scans.budget
            batch = admit(records, partition.policy, self._now(), self._reply.version, budget)
            if isinstance(batch, Admission):
                return batch
            self._append(partition, batch)
        except Refusal as refusal:
            self.refuse(refusal)
        return None

    def end(self, admission: Admission) -> None:
        """The batch was admitted; the partition may have changed hands meanwhile."""
        try:
            self._append(self._writable(), admission.stamped(self._now()))
        except Refusal as refusal:
            self.refuse(refusal)

    def refuse(self, refusal: Refusal) -> None:
        _fail(self.result, refusal.code, refusal.message)
        if isinstance(refusal, InvalidRecords):
            self.result.record_errors = [
                wire.BatchIndexAndErrorMessage(index, message)
                for index, message in refusal.record_errors
            ]

    def _now(self) -> WallTime:
        # The fast way may have looked earlier in this turn: what it appends next is not earlier.
        self._broker.prepared_produces.forget_time()
        return self._broker.env.clock.wall()

    def _writable(self) -> Partition:
        acks = self._waiting.acks
        if acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            raise Refusal(ErrorCode.INVALID_REQUIRED_ACKS)
        topic, partitions = self._topic, self._broker.partitions
        partition = partitions.led(topic.name, topic.topic_id, self._index)
        if partition.name.topic in INTERNAL_TOPICS and self._reply.client_id != ADMIN_CLIENT:
            message = f"Cannot append to internal topic {partition.name.topic}"
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        partitions.check_writable(partition)
        if acks == ACKS_ALL:
            partition.check_enough_replicas()
        return partition

    def _append(self, partition: Partition, batch: Batch) -> None:
        self._broker.metrics.bytes_in += batch.size
        appending = _Append(self._waiting, self.result, partition.is_slow)
        try:
            placed = partition.append(batch, appending)
            self.result.base_offset, self.result.log_append_time_ms = placed
        except Refusal as refusal:
            appending.refused(refusal.code, refusal.message)


class _Rest(memory.Waiting):
    """The entries of a request that cost more than this turn's budget, on bytes of their own.

    Their connection is held, so that no later request of it overtakes them, and their bytes are
    counted with those of unfinished requests.
    """

    def __init__(
        self, entries: list[_Entry], connection: Connection, broker: ProduceContext
    ) -> None:
        self._entries = entries
        self._connection = connection
        self._broker = broker
        for entry in entries:
            entry.records = bytes(entry.records)
        broker.memory.hold(self, sum(len(entry.records) for entry in entries))
        connection.hold()

    async def append(self, admission: Admission | None, then: Callable[[], None]) -> None:
        """`admission` is that of the first entry, if its turn has come already."""
        try:
            for entry in self._entries:
                try:
                    await self._append(entry, admission)
                except AssertionError:
                    raise
                except Exception:
                    self._broker.metrics.server_errors += 1
                    logger.exception("PRODUCE failed")
                    entry.refuse(Refusal(ErrorCode.UNKNOWN_SERVER_ERROR))
                admission = None
            then()
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001  It is this connection's.
            self._connection.fail(error)
        finally:
            self._broker.memory.release(self)
            self._connection.release()
            self._broker.env.network.end_turn_soon()  # Others may wait for the memory.

    async def _append(self, entry: _Entry, admission: Admission | None) -> None:
        scans = self._broker.scans
        if admission is None:
            await scans.budget.wait(entry.cost_us)
            admission = entry.begin()
        if admission is not None:
            try:
                await scans.finish(admission)
            except Refusal as refusal:
                entry.refuse(refusal)
            else:
                entry.end(admission)


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: ProduceContext) -> None:
    """Append every batch in order; answer when all are as safe as `acks` asks."""
    if reply.version < 3:
        raise ProtocolError(f"PRODUCE version {reply.version} is not served")
    response = wire.Response()
    waiting = Waiting(reply, request.acks, response, broker)
    entries: list[_Entry] = []
    for topic in request.topic_data:
        parts = [_Entry(broker, reply, waiting, topic, part) for part in topic.partition_data]
        entries += parts
        results = [part.result for part in parts]
        response.responses.append(wire.TopicProduceResponse(topic.name, topic.topic_id, results))

    def all_begun() -> None:
        if request.acks == ACKS_ALL and waiting.is_slow:
            waiting.timer = broker.call_later(request.timeout_ms, waiting.timed_out)
        waiting.settled()

    budget = broker.scans.budget
    for place, entry in enumerate(entries):
        is_affordable = budget.take(entry.cost_us)
        admission = entry.begin() if is_affordable else None
        if not is_affordable or admission is not None:
            rest = _Rest(entries[place:], reply.connection, broker)
            broker.spawn(rest.append(admission, all_begun))
            return
    all_begun()


def raw_handler(broker: ProduceContext) -> RawHandler:
    return broker.prepared_produces.serve


def _fail(result: wire.PartitionProduceResponse, code: ErrorCode, message: str | None) -> None:
    result.error_code, result.error_message = code, message
    result.base_offset = result.log_append_time_ms = result.log_start_offset = -1
