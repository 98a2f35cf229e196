"""Fetches of one partition, from one offset to another: the next is sent before one is decoded.

What a task needs to begin was found by the driver: the leader's address and the topic's id. When
the leader moves, or the broker is restarted, the task looks around by itself and goes on where it
was, for as long as `DEADLINE_MS` without progress. Offsets that are gone are loss, and what then
happens is the reader's choice; gaps are none: compaction and transactions leave them.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ottla.client.blocking_connection import BlockingConnection
from ottla.client.errors import ClientError, NotServed, Refused, UnknownHost, check
from ottla.client.offsets import CONSUMER, EARLIEST, LATEST, READ_COMMITTED
from ottla.client.session import parse_addresses
from ottla.client.unpacking import Transactions
from ottla.env.network import Address
from ottla.model.errors import ErrorCode
from ottla.model.types import ZERO_UUID, Offset
from ottla.protocol.messages import fetch as wire
from ottla.protocol.messages import list_offsets, metadata
from ottla.records.batch import Buffer
from ottla.spark.arrow.batch_scan import Placed, scan
from ottla.spark.errors import DataLoss, SparkError
from ottla.spark.source.idle_connections import borrow, give_back
from ottla.spark.source.source import Manner, Source

DEADLINE_MS = 60_000
TRUNCATED_MS_MAX = 10_000  # A new leader may not yet know how far the log is committed.
BACKOFF_SECONDS = 0.1
BACKOFF_SECONDS_MAX = 1.0
NAMES_VERSION_MAX = 12  # From 13 on, Fetch names topics by their ids.
SLACK_BYTES = 64 * 1024
FEW_OFFSETS, FIRST_BYTES = 10_000, 256 * 1024  # A short range begins small: most of it may be all.
GONE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

log = logging.getLogger("ottla.spark")


@dataclass(slots=True)
class Fetched:
    data: Buffer
    placed: list[Placed]
    start: Offset  # What was asked for: the first batch may begin below it.


class Fetcher:
    def __init__(self, source: Source, manner: Manner, start: Offset, end: Offset) -> None:
        self._source = source
        self._manner = manner
        self.position = start
        self._end = end
        self._connection: BlockingConnection | None = None
        self._is_fresh = True
        self._bytes_per_offset = 0.0
        self._moved_at = time.monotonic()
        self._failures = 0

    def fetches(self) -> Iterator[Fetched]:
        """Each answer with what it holds for us; its bytes are good until the next is asked for."""
        try:
            while self.position < self._end:
                try:
                    fetched = self._next()
                except ClientError as failure:
                    self._recover(failure)
                    continue
                if fetched is not None:
                    yield fetched
        finally:
            self._release()

    def _next(self) -> Fetched | None:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        if connection.is_idle:
            self._send(connection, self.position)
        answer: wire.Response = connection.receive()
        check(answer.error_code, about=str(connection.address))
        result = answer.responses[0].partitions[0]
        if result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._lose(self._ends(connection))
            return None
        check(result.error_code, about=f"{self._source} at offset {self.position}")
        return self._take(connection, result)

    def _take(self, connection: BlockingConnection, result: wire.PartitionData) -> Fetched | None:
        transactions = None
        if self._manner.isolation == READ_COMMITTED:
            transactions = Transactions(
                (item.producer_id, item.first_offset) for item in result.aborted_transactions or ()
            )
        data = result.records or b""
        found = scan(str(self._source), data, self.position, self._end, transactions)
        if found.next_offset == self.position:
            self._wait_for_more(result)
            return None
        asked = self.position
        self._bytes_per_offset = found.size_bytes / (found.next_offset - self.position)
        self.position = found.next_offset
        self._moved_at, self._failures, self._is_fresh = time.monotonic(), 0, True
        if self.position < self._end:
            try:
                self._send(connection, self.position)
            except ClientError:
                self._drop()  # What came is good all the same; the next turn connects anew.
        return Fetched(data, found.placed, asked)

    def _send(self, connection: BlockingConnection, offset: Offset) -> None:
        has_id = self._source.topic_id != ZERO_UUID
        version = connection.version_for(wire.Request, None if has_id else NAMES_VERSION_MAX)
        size = self._manner.fetch_bytes
        if self._bytes_per_offset:  # Towards the end, no more is asked for than is wanted.
            rest = int((self._end - offset) * self._bytes_per_offset * 1.25) + SLACK_BYTES
            size = min(size, rest)
        elif self._end - offset < FEW_OFFSETS:
            size = min(size, FIRST_BYTES)
        partition = wire.FetchPartition(
            self._source.partition, fetch_offset=offset, partition_max_bytes=size
        )
        topic = wire.FetchTopic(self._source.topic, self._source.topic_id, [partition])
        request = wire.Request(
            max_wait_ms=self._manner.wait_ms,
            min_bytes=1,
            max_bytes=max(size, self._manner.fetch_bytes),
            isolation_level=self._manner.isolation,
            topics=[topic],
        )
        connection.send(request, wire.Response, version)

    # When there is trouble.

    def _wait_for_more(self, result: wire.PartitionData) -> None:
        """Nothing came though the range goes on: the answer waited at the broker, so ask again."""
        is_committed = self._manner.isolation == READ_COMMITTED
        reached = result.last_stable_offset if is_committed else result.high_watermark
        waited_ms = (time.monotonic() - self._moved_at) * 1000
        if reached <= self.position and waited_ms > TRUNCATED_MS_MAX:
            self._lose((result.log_start_offset, reached))
        elif waited_ms > DEADLINE_MS:
            raise SparkError(
                f"{self._source} gave nothing at offset {self.position} for"
                f" {DEADLINE_MS // 1000} s, though it should reach {self._end}"
            )

    def _lose(self, ends: tuple[Offset, Offset] | None) -> None:
        """The offset wanted is not in the log: fail, or go on with what there is."""
        wanted = f"offsets {self.position} to {self._end - 1} of {self._source} were to be read"
        position = self._end
        if ends is None:
            sentence = f"{wanted}, but the topic was deleted, or made anew under the same name"
        elif ends[0] > self.position:
            sentence = f"{wanted}, but the log begins at {ends[0]} now: the older ones are gone"
            position = min(ends[0], self._end)
        else:
            sentence = f"{wanted}, but the log ends at {ends[1]} now"
        if self._manner.fails_on_data_loss:
            raise DataLoss(f"{sentence}; to go on without them, set failOnDataLoss to false")
        log.warning("%s; going on, since failOnDataLoss is false", sentence)
        self.position = position

    def _recover(self, failure: ClientError) -> None:
        """Find the leader anew after a pause, unless it is for good or has lasted too long."""
        is_stale = self._connection is not None and not self._is_fresh
        self._drop()
        is_gone = isinstance(failure, Refused) and failure.code in GONE
        waited_ms = (time.monotonic() - self._moved_at) * 1000
        # The name of a broker that is restarted elsewhere may have no address for a moment.
        may_pass = failure.is_retriable or is_gone or isinstance(failure, UnknownHost)
        if waited_ms > DEADLINE_MS or not may_pass:
            raise SparkError(f"{self._source} cannot be read: {failure}") from failure
        if is_stale:
            self._is_fresh = True
            return  # The broker had closed a connection that lay idle; nothing is wrong.
        time.sleep(min(BACKOFF_SECONDS * 2**self._failures, BACKOFF_SECONDS_MAX))
        self._failures = min(self._failures + 1, 10)
        try:
            self._find_leader(is_gone)
        except ClientError as trouble:
            if not (trouble.is_retriable or isinstance(trouble, UnknownHost)):
                raise SparkError(f"{self._source} cannot be read: {trouble}") from trouble

    def _find_leader(self, is_gone: bool) -> None:
        connection = self._any_connection()
        try:
            wanted = [metadata.MetadataRequestTopic(name=self._source.topic)]
            request = metadata.Request(wanted, allow_auto_topic_creation=False)
            answer = connection.ask(request, metadata.Response)
        finally:
            give_back(self._manner.access, connection)
        (topic,) = answer.topics
        known = self._source.topic_id
        has_other_id = ZERO_UUID not in (known, topic.topic_id) and topic.topic_id != known
        is_missing = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_gone
        if has_other_id or (is_missing and self._failures > 3):
            self._lose(None)
            return
        check(topic.error_code, about=str(self._source))
        nodes = {node.node_id: Address(node.host, node.port) for node in answer.brokers}
        leaders = {item.partition_index: item.leader_id for item in topic.partitions}
        leader = nodes.get(leaders.get(self._source.partition, -1))
        if leader is not None:
            self._source = replace(self._source, leader=leader)

    def _any_connection(self) -> BlockingConnection:
        access = self._manner.access
        addresses = dict.fromkeys([self._source.leader, *parse_addresses(access.bootstrap)])
        trouble: ClientError | None = None
        for address in addresses:
            try:
                return access.dialer.dial_blocking(address, timeout_ms=access.request_ms_max)
            except ClientError as failure:
                trouble = trouble or failure
        assert trouble is not None, "there was at least one address"
        raise trouble

    def _ends(self, connection: BlockingConnection) -> tuple[Offset, Offset]:
        """Where the log begins and ends now."""
        found = []
        for timestamp in (EARLIEST, LATEST):
            partition = list_offsets.ListOffsetsPartition(
                self._source.partition, timestamp=timestamp
            )
            topic = list_offsets.ListOffsetsTopic(self._source.topic, [partition])
            request = list_offsets.Request(CONSUMER, self._manner.isolation, [topic])
            answer = connection.ask(request, list_offsets.Response)
            result = answer.topics[0].partitions[0]
            check(result.error_code, about=str(self._source))
            found.append(result.offset)
        return found[0], found[1]

    def _connect(self) -> BlockingConnection:
        access = self._manner.access
        timeout_ms = access.request_ms_max + self._manner.wait_ms
        connection, self._is_fresh = borrow(access, self._source.leader, timeout_ms)
        try:
            connection.version_for(wire.Request)
        except NotServed:
            connection.close()
            raise
        return connection

    def _release(self) -> None:
        if self._connection is not None:
            give_back(self._manner.access, self._connection)
            self._connection = None

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
