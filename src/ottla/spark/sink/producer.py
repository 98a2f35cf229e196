"""Writes batches to their partitions: several requests under way, each batch once and in order.

Every batch bears this producer's id, its partition's epoch and the number of its first record, and
keeps them over all attempts that may have been written: a broker drops what it has already, and
refuses what comes too early. As long as all goes well, requests follow each other without waiting.
When one fails, everything under way is waited for, and what is not confirmed is sent again one
batch at a time, in order, before anything new is. Batches that are out of sequence and certainly
not written are sent under the partition's next epoch (KIP-360).
"""

import logging
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from ottla.client.blocking_connection import BlockingConnection
from ottla.client.delivery import MAYBE_WRITTEN, OUT_OF_SEQUENCE, TOO_LARGE
from ottla.client.errors import ClientError, Refused, check
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.messages import produce as wire
from ottla.records.batch import SEQUENCE_MAX
from ottla.spark.arrow.encoding import Body, Producer, seal
from ottla.spark.sink.batches import Batch, halves, renumber
from ottla.spark.sink.cluster import BACKOFF_S, BACKOFF_S_MAX, SinkCluster

log = logging.getLogger("ottla.spark")

ACKS_ALL: Final = -1
NAMES_VERSION_MAX: Final = 12  # From 13 on, topics are named by their ids.
WRITTEN_BEFORE: Final = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


@dataclass(frozen=True, slots=True)
class SinkSettings:
    codec: int = 0
    batch_bytes_max: int = 512 * 1024
    request_bytes_max: int = 1024 * 1024
    requests_max: int = 5  # As many batches of one partition as a broker remembers.
    delivery_ms_max: int = 120_000
    request_ms_max: int = 30_000
    record_bytes_max: int | None = None  # A larger one is refused before it is sent.


@dataclass(slots=True)
class Line:
    """The batches of one partition that are not confirmed yet, oldest first."""

    epoch: int
    next_sequence: int = 0
    is_known: bool = False  # To the broker: it takes any number from a producer it never saw.
    waiting: deque[Batch] = field(default_factory=deque)


class SinkProducer:
    def __init__(self, cluster: SinkCluster, settings: SinkSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._lines: dict[TopicPartition, Line] = {}
        self._next: dict[BlockingConnection, list[Batch]] = {}  # Of each broker's next request.
        self._sent: dict[BlockingConnection, deque[list[Batch]]] = {}
        self._id, self._first_epoch = cluster.new_producer()
        self.batch_bytes_max: dict[str, int] = {}  # Of topics that took no larger ones.

    def write(self, place: TopicPartition, body: Body) -> None:
        """Hand a batch over; `flush` waits until it is written. Blocks while much is under way."""
        line = self._lines.setdefault(place, Line(self._first_epoch))
        if line.waiting and not line.is_known:
            self.flush()
        batch = Batch(place, bytearray(), body.record_count, line.next_sequence)
        who = Producer(self._id, line.epoch, line.next_sequence)
        batch.data = seal(body, self._settings.codec, who)
        line.next_sequence = (line.next_sequence + body.record_count) & SEQUENCE_MAX
        line.waiting.append(batch)
        try:
            self._enqueue(batch)
        except ClientError as failure:
            self._recover(failure)

    def flush(self) -> None:
        """Return when everything is written; raise if something cannot be."""
        try:
            for connection in list(self._next):
                self._send(connection)
            for connection in list(self._sent):
                while self._sent[connection]:
                    self._receive(connection)
        except ClientError as failure:
            self._recover(failure)

    def _enqueue(self, batch: Batch) -> None:
        connection = self._cluster.leader(batch.place)
        together = self._next.setdefault(connection, [])
        size = sum(len(other.data) for other in together) + len(batch.data)
        is_full = size > self._settings.request_bytes_max
        # A request carries one batch of a partition: so says the protocol.
        if together and (is_full or any(other.place == batch.place for other in together)):
            self._send(connection)
            together = self._next[connection]
        together.append(batch)

    def _send(self, connection: BlockingConnection) -> None:
        together, self._next[connection] = self._next[connection], []
        if not together:
            return
        sent = self._sent.setdefault(connection, deque())
        while len(sent) >= self._settings.requests_max:
            self._receive(connection)
        sent.append(together)
        self._produce(connection, together)

    def _produce(self, connection: BlockingConnection, together: list[Batch]) -> None:
        topics: dict[str, wire.TopicProduceData] = {}
        for batch in together:
            name = batch.place.topic
            topic = topics.setdefault(name, wire.TopicProduceData(name))
            data = wire.PartitionProduceData(batch.place.partition, batch.data)
            topic.partition_data.append(data)
        request = wire.Request(
            acks=ACKS_ALL,
            timeout_ms=self._settings.request_ms_max,
            topic_data=list(topics.values()),
        )
        for batch in together:
            batch.unanswered += 1
        version = connection.version_for(wire.Request, NAMES_VERSION_MAX)
        connection.send(request, wire.Response, version)

    def _receive(self, connection: BlockingConnection) -> None:
        """Take the oldest answer; raise the first refusal in it, when all of it is noted."""
        answer = connection.receive()
        together = self._sent[connection].popleft()
        failure = self._note(together, answer)
        if failure is not None:
            raise failure

    def _note(self, together: list[Batch], answer: wire.Response) -> Refused | None:
        results = {
            TopicPartition(topic.name, result.index): result
            for topic in answer.responses
            for result in topic.partition_responses
        }
        first: Refused | None = None
        for batch in together:
            result = results.get(batch.place)
            if result is None:
                result = wire.PartitionProduceResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            if result.error_code not in MAYBE_WRITTEN:
                batch.unanswered -= 1
            try:
                if result.error_code != WRITTEN_BEFORE:
                    check(result.error_code, result.error_message, _described(batch.place))
            except Refused as failure:
                first = first or failure
            else:
                self._confirm(batch)
        return first

    def _confirm(self, batch: Batch) -> None:
        line = self._lines[batch.place]
        line.waiting.remove(batch)
        line.is_known = True

    def _recover(self, failure: ClientError) -> None:
        """Send again what is not confirmed, in order, until all of it is, or the time is over."""
        log.warning("sending again what is not confirmed: %s", failure)
        self._drain()
        deadline = time.monotonic() + self._settings.delivery_ms_max / 1000
        pause_s = BACKOFF_S
        for line in self._lines.values():
            while line.waiting:
                try:
                    self._again(line)
                    pause_s = BACKOFF_S
                except ClientError as trouble:
                    may_pass = trouble.is_retriable or _is_out_of_sequence(trouble)
                    if not may_pass or time.monotonic() + pause_s > deadline:
                        raise
                    self._cluster.forget_topics()
                    time.sleep(pause_s)
                    pause_s = min(2 * pause_s, BACKOFF_S_MAX)

    def _drain(self) -> None:
        """Take the answers that still come, then begin with connections that owe none."""
        for connection, sent in self._sent.items():
            try:
                while sent:
                    self._note(sent.popleft(), connection.receive())
            except ClientError:
                continue  # Nothing more comes here: its batches are not confirmed.
        self._next.clear()
        self._sent.clear()
        self._cluster.forget_topics()

    def _again(self, line: Line) -> None:
        batch = line.waiting[0]
        connection = self._cluster.leader(batch.place)
        self._produce(connection, [batch])
        refused = self._note([batch], connection.receive())
        if refused is None:
            return
        if refused.code in TOO_LARGE and batch.count > 1:
            self.batch_bytes_max[batch.place.topic] = len(batch.data) // 2
            line.waiting.popleft()
            line.waiting.extendleft(reversed(halves(batch, self._settings.codec)))
        else:
            # A batch that may be written is sent again as it is: a deposed leader answers so too.
            if _is_out_of_sequence(refused) and not any(b.unanswered for b in line.waiting):
                self._raise_epoch(line)
            raise refused

    def _raise_epoch(self, line: Line) -> None:
        """Number the batches that are not confirmed from 0, under the next epoch."""
        line.epoch += 1
        log.warning("producer %d is out of sequence: going on in epoch %d", self._id, line.epoch)
        line.next_sequence = 0
        line.is_known = False
        for batch in line.waiting:
            renumber(batch, Producer(self._id, line.epoch, line.next_sequence))
            line.next_sequence = (line.next_sequence + batch.count) & SEQUENCE_MAX


def _is_out_of_sequence(failure: ClientError) -> bool:
    return isinstance(failure, Refused) and failure.code in OUT_OF_SEQUENCE


def _described(place: TopicPartition) -> str:
    return f"cannot write to partition {place.partition} of topic {place.topic!r}"
