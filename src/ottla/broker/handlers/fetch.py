"""Fetch (api key 1), versions 4 to 18.

    v4  isolation level      v7  incremental sessions     v9   leader epochs checked (KIP-320)
    v5  log start offset     v12 flexible, diverging_epoch      v13  topics by id
    v15 replica_state        v16 where the leaders are

What is there is answered at once; a fetch for which there is less than `min_bytes` waits in its
partitions until they have grown or `max_wait_ms` has passed. The records are not read here: the
answer names ranges of files, and the transport sends them.

A session of many partitions costs as much with each request, however short that is, and one record
may end the waiting of many fetches. So all looks and answers share the budget of a loop turn; those
of thousands of partitions take several turns.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ottla.broker.fetch.response import Fetched, fetch_response, response_steps
from ottla.broker.fetch.sessions import FetchSession, Wanted
from ottla.broker.handlers.context import FetchContext
from ottla.broker.partitions.partition import Partition
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.leader_hints import FETCH_SINCE, HINTED, Where, leader_of, whereabouts
from ottla.env.network import Piece
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.protocol.messages import fetch as wire
from ottla.replication.divergence import divergence

READ_COMMITTED: Final = 1
FOLLOWERS_SINCE: Final = 11
TOPIC_IDS_SINCE: Final = 13
FEW: Final = 100  # So many partitions of a request cost what any request costs.
WANTED_US: Final = 5
SLICE: Final = 1000  # Looked at, or answered, without a pause.
# A waiting fetch of more partitions looks first at the one that grew.
LOOKED_AT_TOGETHER: Final = 8
CROWD: Final = 100  # So many small fetches that wait for a partition are answered with its flush.
# Answers leave in order: a fetch behind so many others would wait for nothing but them.
WAITING_MAX: Final = 8


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: FetchContext) -> None:
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        broker.replicas.sessions.serve(request, reply)
        return
    uses_ids = reply.version >= TOPIC_IDS_SINCE
    try:
        session, wanted, is_full = broker.fetch_sessions.open(request, uses_ids, broker.now)
    except Refusal as refusal:
        reply.complete(fetch_response(reply.version, reply.correlation_id, 0, refusal.code, []))
        return
    fetching = Fetching(request, reply, broker, session, wanted, is_full)
    if len(wanted) <= FEW or (
        len(wanted) <= SLICE and broker.scans.budget.take_share(len(wanted) * WANTED_US)
    ):
        fetching.start()
    else:
        reply.connection.hold()
        broker.spawn(fetching.start_later())


class Fetching:
    """One fetch, from its first look until its answer."""

    __slots__ = (
        "_broker",
        "_bytes_max",
        "_has_grown",
        "_is_committed_only",
        "_is_full",
        "_min_bytes",
        "_rack",
        "_reply",
        "_session",
        "_size",
        "_sizes",
        "_timer",
        "_wait_ms",
        "_wanted",
        "_watched",
    )

    def __init__(
        self,
        request: wire.Request,
        reply: Reply,
        broker: FetchContext,
        session: FetchSession,
        wanted: Sequence[Wanted],
        is_full: bool,
    ) -> None:
        self._broker = broker
        self._reply = reply
        self._session = session
        self._wanted = wanted
        self._is_full = is_full
        self._bytes_max = min(request.max_bytes, broker.settings.fetch_max_bytes)
        self._min_bytes = min(request.min_bytes, self._bytes_max)
        self._wait_ms = request.max_wait_ms
        self._rack = request.rack_id
        self._is_committed_only = request.isolation_level == READ_COMMITTED
        self._watched: dict[Partition, Wanted] = {}
        self._size = 0  # Of all records that could be given when they were last looked at,
        self._sizes: dict[Partition, int] = {}  # and of each partition that has any.
        self._has_grown = False  # Before all were watched.
        self._timer: object = None

    def start(self) -> None:
        fetched: list[Fetched] = []
        size = self._look(self._wanted, fetched, 0)
        if self._may_wait(fetched, size):
            self._watch(fetched)
            self._wait(size)
        else:
            self._answer(fetched)

    async def start_later(self) -> None:
        """Start in turns that have the time for so many partitions; the connection is held."""
        connection = self._reply.connection
        try:
            fetched, size = await self._look_later()
            if connection.is_closed:
                return
            if not self._may_wait(fetched, size):
                await self._answer_later(fetched)
            elif await self._watch_later(fetched):
                self._wait(size)
            elif not connection.is_closed:
                await self._answer_later((await self._look_later())[0])
        except Exception as error:  # noqa: BLE001  The connection's guard decides.
            self._broker.connections.failed(connection, error)
        finally:
            connection.release()

    def grew(self, partition: Partition) -> None:
        if self._timer is None:
            self._has_grown = True  # Or it is answered, or its client is gone.
        elif len(self._watched) <= LOOKED_AT_TOGETHER and (
            len(partition.watching) <= CROWD or self._takes_turn()
        ):
            fetched: list[Fetched] = []
            size = self._look(self._wanted, fetched, 0)
            if self._timer is None:
                return  # Looking found a disk that fails, and that was told first.
            if size >= self._min_bytes or any(_is_urgent(part) for part in fetched):
                self._stop()
                self._answer(fetched)
            else:
                self._note(size, zip(self._watched, fetched, strict=True))
        elif self._has_enough(partition):
            self._finish()

    def _may_wait(self, fetched: list[Fetched], size: int) -> bool:
        return (
            self._wait_ms > 0
            and size < self._min_bytes
            and bool(fetched)
            and len(self._reply.connection.replies) <= WAITING_MAX
            and not any(_is_urgent(part) for part in fetched)
        )

    def _watch(self, fetched: Sequence[Fetched]) -> None:
        for part in fetched:
            partition = self._find(part.wanted)
            partition.watching[self] = None
            self._watched[partition] = part.wanted
            if part.records is not None:
                self._sizes[partition] = part.records.size
            if partition.high_watermark != part.high_watermark:
                self._has_grown = True

    async def _watch_later(self, fetched: list[Fetched]) -> bool:
        """Whether there is still nothing but to wait."""
        try:
            for first in range(0, len(fetched), SLICE):
                part = fetched[first : first + SLICE]
                await self._broker.scans.budget.wait(len(part) * WANTED_US)
                self._watch(part)
        except Refusal:  # One is gone.
            self._has_grown = True
        if self._has_grown or self._reply.connection.is_closed:
            self._unwatch()
            return False
        return True

    def _wait(self, size: int) -> None:
        self._size = size
        self._timer = self._broker.call_later(self._wait_ms, self._finish)
        self._reply.connection.on_closed.append(self._stop)

    def _note(self, size: int, looked_at: Iterable[tuple[Partition, Fetched]]) -> None:
        self._size = size
        for partition, part in looked_at:
            if part.records is not None:
                self._sizes[partition] = part.records.size

    def _has_enough(self, partition: Partition) -> bool:
        """Whether this partition brings the records to `min_bytes`, or has to be told of."""
        fetched: list[Fetched] = []
        size = self._look([self._watched[partition]], fetched, 0)
        self._size += size - self._sizes.get(partition, 0)
        self._sizes[partition] = size
        if self._timer is None:
            return False  # Looking found a disk that fails, and that was told first.
        return self._size >= self._min_bytes or _is_urgent(fetched[0])

    def _takes_turn(self) -> bool:
        us = (len(self._wanted) + 1) * WANTED_US  # The answer itself costs about one more.
        return len(self._wanted) <= SLICE and self._broker.scans.budget.take_share(us)

    def _finish(self) -> None:
        """Wait no longer, and answer with what there is."""
        self._stop()
        if self._reply.connection.is_closed:
            return
        if self._takes_turn():
            fetched: list[Fetched] = []
            self._look(self._wanted, fetched, 0)
            self._answer(fetched)
        else:
            self._broker.spawn(self._finish_later())

    async def _finish_later(self) -> None:
        connection = self._reply.connection
        try:
            fetched, _ = await self._look_later()
            if not connection.is_closed:
                await self._answer_later(fetched)
        except Exception as error:  # noqa: BLE001  The connection's guard decides.
            self._broker.connections.failed(connection, error)

    def _stop(self) -> None:
        """Wait no longer."""
        if self._timer is None:
            return
        self._timer.cancel()  # type: ignore[attr-defined]
        self._timer = None
        self._unwatch()
        if self._stop in self._reply.connection.on_closed:
            self._reply.connection.on_closed.remove(self._stop)

    def _unwatch(self) -> None:
        for partition in self._watched:
            partition.watching.pop(self, None)

    async def _look_later(self) -> tuple[list[Fetched], int]:
        """Look in turns that have the time; at less than all if the client goes meanwhile."""
        fetched: list[Fetched] = []
        size = 0
        for first in range(0, len(self._wanted), SLICE):
            part = self._wanted[first : first + SLICE]
            await self._broker.scans.budget.wait((len(part) + 1) * WANTED_US)
            if self._reply.connection.is_closed:
                break
            size = self._look(part, fetched, size)
        return fetched, size

    def _look(self, these: Sequence[Wanted], fetched: list[Fetched], size: int) -> int:
        """Add what partitions have to say now; returns how many bytes of records that makes."""
        left = max(self._bytes_max - size, 0)
        for wanted in these:
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
        return size

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
            part.diverging = divergence(
                partition,
                fetch_offset=wanted.fetch_offset,
                last_fetched_epoch=wanted.last_fetched_epoch,
            )
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
            if part.records is not None:
                part.records.owner = partition
        if self._is_committed_only and part.diverging is None:
            part.aborted = []
            if part.records is not None:
                part.aborted = [
                    (transaction.producer_id, transaction.first_offset)
                    for transaction in log.aborted_transactions(offset, end)
                ]

    def _answer(self, fetched: list[Fetched]) -> None:
        told = self._tell(fetched)
        reply = self._reply
        where = self._where(told)
        reply.complete(
            fetch_response(reply.version, reply.correlation_id, self._session.id, 0, told, where)
        )

    async def _answer_later(self, fetched: list[Fetched]) -> None:
        """The same in turns that have the time, if there is much to tell."""
        if len(fetched) <= SLICE:  # Paid for with the look.
            self._answer(fetched)
            return
        told: list[Fetched] = []
        for first in range(0, len(fetched), SLICE):
            told += self._tell(fetched[first : first + SLICE])
            await self._broker.scans.budget.wait(SLICE)
        reply = self._reply
        pieces: list[Piece] = []
        where = self._where(told)
        for _ in response_steps(
            pieces, reply.version, reply.correlation_id, self._session.id, 0, told, where
        ):
            await self._broker.scans.budget.wait(SLICE * WANTED_US)
        if not reply.connection.is_closed:
            reply.complete(pieces)

    def _tell(self, fetched: list[Fetched]) -> list[Fetched]:
        """Those that the answer names, noted as told."""
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
        return told

    def _where(self, told: list[Fetched]) -> Sequence[Where]:
        leaders = [part.leader.leader for part in told if part.leader is not None]
        listener = self._reply.connection.listener
        return whereabouts(self._broker.image, leaders, listener) if leaders else ()


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
