"""Writes batches to their partitions: several requests under way, each batch once and in order.

As long as all goes well, requests follow each other without waiting. When one fails, everything
under way is waited for, and what is not confirmed is sent again one batch at a time, in order,
before anything new is. `ottla.client.idempotence` numbers the batches and decides about failures.
"""

import logging
import time
from collections import deque
from dataclasses import dataclass

from ottla.client.blocking_connection import BlockingConnection
from ottla.client.delivery import ACKS_ALL, NAMES_VERSION_MAX
from ottla.client.errors import ClientError, Refused
from ottla.client.idempotence import Unconfirmed, Verdict
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.messages import produce as wire
from ottla.spark.arrow.encoding import Body, seal
from ottla.spark.sink.batches import Batch, halves
from ottla.spark.sink.cluster import BACKOFF_S, BACKOFF_S_MAX, SinkCluster

log = logging.getLogger("ottla.spark")


@dataclass(frozen=True, slots=True)
class SinkSettings:
    codec: int = 0
    batch_bytes_max: int = 512 * 1024
    request_bytes_max: int = 1024 * 1024
    requests_max: int = 5  # As many batches of one partition as a broker remembers.
    delivery_ms_max: int = 120_000
    request_ms_max: int = 30_000
    record_bytes_max: int | None = None  # A larger one is refused before it is sent.


Line = Unconfirmed[Batch]


class SinkProducer:
    def __init__(self, cluster: SinkCluster, settings: SinkSettings) -> None:
        self._cluster = cluster
        self._settings = settings
        self._lines: dict[TopicPartition, Line] = {}
        self._next: dict[BlockingConnection, list[Batch]] = {}  # Of each broker's next request.
        self._sent: dict[BlockingConnection, deque[list[Batch]]] = {}
        self._identity = cluster.new_producer()
        self.batch_bytes_max: dict[str, int] = {}  # Of topics that took no larger ones.

    def write(self, place: TopicPartition, body: Body) -> None:
        """Hand a batch over; `flush` waits until it is written. Blocks while much is under way."""
        line = self._lines.setdefault(place, Line(self._identity))
        if line.batches and not line.is_known:
            self.flush()
        assert line.identity is not None, "a producer that has failed is not used again"
        batch = Batch(place=place, count=body.record_count)
        line.add(batch)
        batch.data = seal(body, self._settings.codec, batch.numbers)
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
            self._lines[batch.place].sent(batch)
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
            if not self._lines[batch.place].answered(batch, result.error_code):
                about = _described(batch.place)
                first = first or Refused(result.error_code, result.error_message, about)
        return first

    def _recover(self, failure: ClientError) -> None:
        """Send again what is not confirmed, in order, until all of it is, or the time is over."""
        log.warning("sending again what is not confirmed: %s", failure)
        self._drain()
        deadline = time.monotonic() + self._settings.delivery_ms_max / 1000
        pause_s = BACKOFF_S
        for line in self._lines.values():
            while line.batches:
                try:
                    self._again(line)
                    pause_s = BACKOFF_S
                except ClientError as trouble:
                    verdict = _verdict(line, trouble)
                    if verdict is Verdict.SPLIT:
                        self._split(line)
                        continue
                    if verdict is Verdict.FAILED or time.monotonic() + pause_s > deadline:
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
        if line.identity is None:
            line.identify(self._cluster.new_producer())
        batch = line.batches[0]
        connection = self._cluster.leader(batch.place)
        self._produce(connection, [batch])
        refused = self._note([batch], connection.receive())
        if refused is not None:
            raise refused

    def _split(self, line: Line) -> None:
        batch = line.batches[0]
        self.batch_bytes_max[batch.place.topic] = len(batch.data) // 2
        line.split(*halves(batch, self._settings.codec))


def _verdict(line: Line, trouble: ClientError) -> Verdict:
    before = line.identity
    verdict = line.failed(line.batches[0], trouble)
    if line.identity is not None and line.identity != before:
        log.warning("producer %d is out of sequence: going on in epoch %d", *line.identity)
    return verdict


def _described(place: TopicPartition) -> str:
    return f"cannot write to partition {place.partition} of topic {place.topic!r}"
