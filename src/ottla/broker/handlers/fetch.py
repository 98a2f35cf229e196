"""Fetch (api key 1), versions 4 to 18.

    v4  isolation level      v7  incremental sessions     v9   leader epochs checked (KIP-320)
    v5  log start offset     v12 flexible, diverging_epoch      v13  topics by id
    v15 replica_state        v16 where the leaders are

What is there is answered at once; a fetch for which there is less than `min_bytes` waits in its
partitions until they have grown or `max_wait_ms` has passed. The records are not read here: the
answer names ranges of files, and the transport sends them.
"""

from collections.abc import Iterable

from ottla.broker.connection import Reply
from ottla.broker.dispatch import handles
from ottla.broker.fetch_response import Fetched, fetch_response
from ottla.broker.fetch_sessions import FetchSession, Wanted
from ottla.broker.leader_hints import FETCH_SINCE, HINTED, leader_of, whereabouts
from ottla.broker.partition import Partition
from ottla.broker.server import Broker
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.protocol.messages import fetch as wire

READ_COMMITTED = 1
FOLLOWERS_SINCE = 11
TOPIC_IDS_SINCE = 13


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: Broker) -> None:
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        broker.replicas.sessions.serve(request, reply)
        return
    uses_ids = reply.version >= TOPIC_IDS_SINCE
    try:
        session, wanted, is_full = broker.fetch_sessions.open(request, uses_ids, broker.now)
    except Refusal as refusal:
        reply.complete(fetch_response(reply.version, reply.correlation_id, 0, refusal.code, []))
        return
    Fetching(request, reply, broker, session, wanted, is_full).start()


class Fetching:
    """One fetch, from its first look until its answer."""

    __slots__ = (
        "_broker",
        "_bytes_max",
        "_is_committed_only",
        "_is_full",
        "_min_bytes",
        "_partitions",
        "_rack",
        "_reply",
        "_session",
        "_timer",
        "_wait_ms",
        "_wanted",
    )

    def __init__(
        self,
        request: wire.Request,
        reply: Reply,
        broker: Broker,
        session: FetchSession,
        wanted: Iterable[Wanted],
        is_full: bool,
    ) -> None:
        self._broker = broker
        self._reply = reply
        self._session = session
        self._wanted = wanted
        self._is_full = is_full
        self._bytes_max = min(request.max_bytes, broker.settings.fetch_max_bytes)
        self._min_bytes = request.min_bytes
        self._wait_ms = request.max_wait_ms
        self._rack = request.rack_id
        self._is_committed_only = request.isolation_level == READ_COMMITTED
        self._partitions: list[Partition] = []
        self._timer: object = None

    def start(self) -> None:
        fetched, size = self._look()
        if (
            self._wait_ms <= 0
            or size >= self._min_bytes
            or not fetched
            or any(_is_urgent(part) for part in fetched)
        ):
            self._answer(fetched)
            return
        for wanted in self._wanted:
            partition = self._find(wanted)
            partition.watching[self] = None
            self._partitions.append(partition)
        self._timer = self._broker.call_later(self._wait_ms, self._waited)
        self._reply.connection.on_closed.append(self._stop)

    def grew(self, _partition: Partition) -> None:
        if self._timer is None:
            return  # Answered, or its client is gone.
        fetched, size = self._look()
        if self._timer is None:
            return  # Looking found a disk that fails, and that was told first.
        if size >= self._min_bytes or any(_is_urgent(part) for part in fetched):
            self._stop()
            self._answer(fetched)

    def _waited(self) -> None:
        self._stop()
        if not self._reply.connection.is_closed:
            self._answer(self._look()[0])

    def _stop(self) -> None:
        """Wait no longer."""
        if self._timer is None:
            return
        self._timer.cancel()  # type: ignore[attr-defined]
        self._timer = None
        for partition in self._partitions:
            partition.watching.pop(self, None)
        if self._stop in self._reply.connection.on_closed:
            self._reply.connection.on_closed.remove(self._stop)

    def _look(self) -> tuple[list[Fetched], int]:
        """What every partition has to say now, and how many bytes of records that is."""
        left, size = self._bytes_max, 0
        fetched = []
        for wanted in self._wanted:
            part = Fetched(wanted)
            fetched.append(part)
            try:
                partition = self._find(wanted)
                self._read(partition, part, left, at_least_one=size == 0)
            except Refusal as refusal:
                part.error_code, part.diverging = refusal.code, None
                if refusal.code in HINTED and self._reply.version >= FETCH_SINCE:
                    part.leader = leader_of(
                        self._broker.image, wanted.topic, wanted.topic_id, wanted.index
                    )
                continue
            except (OSError, Damaged) as error:
                self._broker.partitions.read_failed(partition, error)
                part.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                continue
            if part.records is not None:
                size += part.records.size
                left = max(left - part.records.size, 0)
        return fetched, size

    def _find(self, wanted: Wanted) -> Partition:
        """A consumer may fetch from a follower that it was told of (KIP-392)."""
        partitions = self._broker.partitions
        if self._reply.version >= FOLLOWERS_SINCE:
            return partitions.readable(wanted.topic, wanted.topic_id, wanted.index)
        return partitions.led(wanted.topic, wanted.topic_id, wanted.index)

    def _read(self, partition: Partition, part: Fetched, left: int, *, at_least_one: bool) -> None:
        wanted, log = part.wanted, partition.log
        partition.check_epoch(wanted.current_leader_epoch)
        if wanted.last_fetched_epoch >= 0:
            part.diverging = _divergence(partition, wanted)
        high_watermark = partition.high_watermark
        last_stable_offset = partition.last_stable_offset
        end = last_stable_offset if self._is_committed_only else high_watermark
        offset = wanted.fetch_offset
        if (offset > log.end_offset or part.diverging is not None) and not (
            partition.is_leader and not self._broker.lifecycle.may_be_fenced
        ):
            # Only who leads for sure knows where a log ends. A client that came by old metadata
            # would start all over, or leave records out, for nothing but our being behind.
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if offset < log.log_start_offset or (offset > log.end_offset and part.diverging is None):
            raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
        part.high_watermark = high_watermark
        part.last_stable_offset = last_stable_offset
        part.log_start_offset = log.log_start_offset
        nearer = partition.nearest_replica(self._rack, offset) if self._rack else None
        if nearer is not None:
            part.preferred_read_replica = nearer
            return
        bytes_max = min(wanted.bytes_max, left)
        if part.diverging is None and offset < end and (bytes_max > 0 or at_least_one):
            part.records = log.read(offset, bytes_max, end_offset=end, at_least_one=at_least_one)
        if self._is_committed_only and part.diverging is None:
            part.aborted = []
            if part.records is not None:
                part.aborted = [
                    (transaction.producer_id, transaction.first_offset)
                    for transaction in log.aborted_transactions(offset, end)
                ]

    def _answer(self, fetched: list[Fetched]) -> None:
        session = self._session
        told = fetched if self._is_full else [part for part in fetched if _is_news(part)]
        broker_bytes = 0
        for part in told:
            wanted = part.wanted
            wanted.told_high_watermark = part.high_watermark
            wanted.told_log_start_offset = part.log_start_offset
            if part.records is not None:
                broker_bytes += part.records.size
                if session.id:
                    session.served(wanted)
        self._broker.metrics.bytes_out += broker_bytes
        reply = self._reply
        leaders = [part.leader.leader for part in told if part.leader is not None]
        listener = reply.connection.listener
        where = whereabouts(self._broker.image, leaders, listener) if leaders else ()
        reply.complete(
            fetch_response(reply.version, reply.correlation_id, session.id, 0, told, where)
        )


def _is_urgent(part: Fetched) -> bool:
    """Whether the client has to hear of it now, records or not."""
    return bool(part.error_code or part.diverging or part.preferred_read_replica >= 0)


def _is_news(part: Fetched) -> bool:
    """Whether an incremental answer has to name this partition."""
    wanted = part.wanted
    return bool(
        part.records is not None
        or _is_urgent(part)
        or part.high_watermark != wanted.told_high_watermark
        or part.log_start_offset != wanted.told_log_start_offset
    )


def _divergence(partition: Partition, wanted: Wanted) -> tuple[int, int] | None:
    """KIP-595: where our log parts from what the client last fetched, if it does."""
    epoch, end_offset = partition.epoch_end_offset(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
