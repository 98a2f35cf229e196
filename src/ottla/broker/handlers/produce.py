"""Produce (api key 0), versions 3 to 13.

    v3  record batches of magic 2      v5   log_start_offset in the answer
    v7  zstd allowed                   v8   record_errors and error_message per partition
    v9  flexible encoding              v10  where the leader is, in the answer
    v13 topics by id

Versions 0 to 2 are in ApiVersions because old librdkafka looks there for its codecs, and are
refused when sent. `handle` is the one path, for any number of topics and partitions; `raw_handler`
is its specialisation: requests of one partition that follow each other on a connection
(`produce/prepared_produce.py`). Tests compare their answers and logs byte by byte.

A batch is appended where it was received: its bytes stay there until the loop turn's flush. A
batch whose records take long to look at is admitted by a worker; until then the rest of its
request and of its connection waits, on bytes of its own.
"""

import logging
from typing import Final

from ottla.broker.partitions.partition import Partition
from ottla.broker.produce.context import ProduceContext
from ottla.broker.produce.waiting import ACKS_ALL, ACKS_LEADER, ACKS_NONE, Waiting
from ottla.broker.wire import memory
from ottla.broker.wire.apis import RawHandler, handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.leader_hints import PRODUCE_SINCE, add_leaders
from ottla.broker.wire.responses import send
from ottla.metadata.image.cluster import INTERNAL_TOPICS
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.model.types import WallTime
from ottla.protocol.messages import produce as wire
from ottla.records.admission import Admission, admit
from ottla.records.batch import Batch
from ottla.records.inspection import InvalidRecords
from ottla.records.scan import PLAIN_BYTES_PER_US

logger = logging.getLogger(__name__)

ADMIN_CLIENT: Final = "__admin_client"  # How Kafka's own tools call themselves.
ENTRY_US: Final = 10

# One partition of a request, its topic and its answer.
Entry = tuple[wire.TopicProduceData, wire.PartitionProduceData, wire.PartitionProduceResponse]


class Produce(Waiting):
    """One request: appends its batches in order, and answers when the last one is settled."""

    __slots__ = ("_broker", "_entries", "_open_results", "_reply", "_response", "_timeout_ms")

    def __init__(self, request: wire.Request, reply: Reply, broker: ProduceContext) -> None:
        super().__init__(reply, request.acks)
        self._broker = broker
        self._reply = reply
        self._timeout_ms = request.timeout_ms
        self._response = wire.Response()
        self._entries: list[Entry] = []
        # In the order of their appends, which is that in which a partition settles them.
        self._open_results: dict[Partition, list[wire.PartitionProduceResponse]] = {}
        for topic in request.topic_data:
            results = [wire.PartitionProduceResponse(part.index) for part in topic.partition_data]
            answer = wire.TopicProduceResponse(topic.name, topic.topic_id, results)
            self._response.responses.append(answer)
            self._entries += [
                (topic, part, result)
                for part, result in zip(topic.partition_data, results, strict=True)
            ]

    def start(self) -> None:
        """Append all batches now, or as many as this loop turn has the time for."""
        self._open = 1  # The request itself, until it has gone through all partitions.
        budget, now = self._broker.scans.budget, self._broker.env.clock.wall()
        entries = self._entries
        is_paid = budget.take(sum(map(_cost_us, entries)))
        for place, entry in enumerate(entries):
            is_affordable = is_paid or budget.take(_cost_us(entry))
            admission = self._begin(entry, now) if is_affordable else None
            if not is_affordable or admission is not None:
                self._leave(entries[place:], admission)
                return
        self._all_begun()

    def appended(self, partition: Partition) -> None:
        self._settle(partition).log_start_offset = partition.log.log_start_offset
        super().appended(partition)

    def _all_begun(self) -> None:
        if self.acks_all and any(partition.is_slow for partition in self._open_results):
            self.start_timer(self._timeout_ms, self._broker)
        self._open -= 1
        if self._open == 0:
            self._answer()

    def _leave(self, entries: list[Entry], admission: Admission | None) -> None:
        """Leave entries to later turns, on bytes of their own; `admission` is the first one's.

        The connection is held, so that no later request of it overtakes them, and their bytes are
        counted with those of unfinished requests.
        """
        for _, part, _ in entries:
            part.records = bytearray(part.records or b"")
        waiting = memory.Waiting()
        self._broker.memory.hold(waiting, sum(len(part.records or b"") for _, part, _ in entries))
        self._reply.connection.hold()
        self._broker.spawn(self._append_later(entries, admission, waiting))

    async def _append_later(
        self, entries: list[Entry], admission: Admission | None, waiting: memory.Waiting
    ) -> None:
        broker, connection = self._broker, self._reply.connection
        try:
            for entry in entries:
                try:
                    await self._append_one_later(entry, admission)
                except AssertionError:
                    raise
                except Exception:
                    broker.metrics.server_errors += 1
                    logger.exception("PRODUCE failed")
                    _refuse(entry[2], Refusal(ErrorCode.UNKNOWN_SERVER_ERROR))
                admission = None
            self._all_begun()
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001  It is this connection's.
            connection.fail(error)
        finally:
            broker.memory.release(waiting)
            connection.release()
            broker.env.network.end_turn_soon()  # Others may wait for the memory.

    async def _append_one_later(self, entry: Entry, admission: Admission | None) -> None:
        scans, clock = self._broker.scans, self._broker.env.clock
        if admission is None:
            await scans.budget.wait(_cost_us(entry))
            admission = self._begin(entry, clock.wall())
        if admission is not None:
            try:
                await scans.finish(admission)
            except Refusal as refusal:
                _refuse(entry[2], refusal)
            else:
                self._end(entry, admission, clock.wall())

    def _begin(self, entry: Entry, now: WallTime) -> Admission | None:
        """Append the batch or refuse it; an Admission is to be finished before `end`."""
        topic, part, result = entry
        try:
            partition = self._writable(topic, part.index)
            policy, records = partition.policy, part.records or b""
            if not policy.is_plain:
                # It may be rewritten, or admitted by a worker while the frame's buffer is reused.
                records = bytearray(records)
            budget = self._broker.scans.budget
            batch = admit(records, policy, now, self._reply.version, budget)
            if isinstance(batch, Admission):
                return batch
            self._append(partition, batch, result)
        except Refusal as refusal:
            _refuse(result, refusal)
        return None

    def _end(self, entry: Entry, admission: Admission, now: WallTime) -> None:
        """The batch was admitted; the partition may have changed hands meanwhile."""
        topic, part, result = entry
        try:
            self._append(self._writable(topic, part.index), admission.stamped(now), result)
        except Refusal as refusal:
            _refuse(result, refusal)

    def _writable(self, topic: wire.TopicProduceData, index: int) -> Partition:
        if self.acks not in (ACKS_NONE, ACKS_LEADER, ACKS_ALL):
            raise Refusal(ErrorCode.INVALID_REQUIRED_ACKS)
        partitions = self._broker.partitions
        partition = partitions.led(topic.name, topic.topic_id, index)
        if partition.name.topic in INTERNAL_TOPICS and self._reply.client_id != ADMIN_CLIENT:
            message = f"Cannot append to internal topic {partition.name.topic}"
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, message)
        if self._broker.directories.is_any_full:
            partitions.check_writable(partition)
        if self.acks_all:
            partition.check_enough_replicas()
        return partition

    def _append(
        self, partition: Partition, batch: Batch, result: wire.PartitionProduceResponse
    ) -> None:
        self._broker.metrics.bytes_in += batch.size
        result.base_offset, result.log_append_time_ms = partition.append(batch, self)
        self._open += 1
        known = self._open_results.get(partition)
        if known is None:
            self._open_results[partition] = [result]
        else:
            known.append(result)

    def _settle(self, partition: Partition) -> wire.PartitionProduceResponse:
        results = self._open_results[partition]
        result = results.pop(0)
        if not results:
            del self._open_results[partition]
        return result

    def _fail(self, partition: Partition, code: ErrorCode) -> None:
        _refuse(self._settle(partition), Refusal(code))

    def _fail_open(self, code: ErrorCode) -> None:
        for results in self._open_results.values():
            for result in results:
                _refuse(result, Refusal(code))

    def _has_failed(self) -> bool:
        return any(result.error_code for _, _, result in self._entries)

    def _send(self) -> None:
        if self._reply.version >= PRODUCE_SINCE:
            add_leaders(self._response, self._broker.image, self._reply.connection.listener)
        send(self._reply, self._response)


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: ProduceContext) -> None:
    """Append every batch in order; answer when all are as safe as `acks` asks."""
    if reply.version < 3:
        raise ProtocolError(f"PRODUCE version {reply.version} is not served")
    Produce(request, reply, broker).start()


def raw_handler(broker: ProduceContext) -> RawHandler:
    return broker.prepared_produces.serve


def _cost_us(entry: Entry) -> int:
    """What it takes of a loop turn's budget, without a look at its records."""
    return ENTRY_US + len(entry[1].records or b"") // PLAIN_BYTES_PER_US


def _refuse(result: wire.PartitionProduceResponse, refusal: Refusal) -> None:
    result.error_code, result.error_message = refusal.code, refusal.message
    result.base_offset = result.log_append_time_ms = result.log_start_offset = -1
    if isinstance(refusal, InvalidRecords):
        result.record_errors = [
            wire.BatchIndexAndErrorMessage(index, message)
            for index, message in refusal.record_errors
        ]
