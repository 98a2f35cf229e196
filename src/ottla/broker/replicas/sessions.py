"""The leader's side of replication: what other brokers fetch from us, one session for each.

A session remembers where each partition stands, and hears when one of them grows or is committed
further: a fetch looks only at those that changed, however many there are. All that grew in one
turn leaves in one answer.
"""

from asyncio import TimerHandle
from collections.abc import Callable
from typing import Final

from ottla.broker.context import Node
from ottla.broker.fetch.response import Fetched, fetch_response
from ottla.broker.fetch.sessions import EPOCH_MAX, FULL_AND_NEW, FULL_AND_NONE, Key, Wanted
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.broker.wire.connection import Reply
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import NodeId
from ottla.protocol.messages import fetch as wire
from ottla.replication.divergence import divergence

TOPIC_IDS_SINCE: Final = 13


class ReplicaSessions:
    def __init__(self, node: Node, partitions: Partitions, metrics: Metrics) -> None:
        self.node = node
        self.partitions = partitions
        self.metrics = metrics
        self._sessions: dict[int, ReplicaSession] = {}
        self._ready: list[ReplicaSession] = []

    def serve(self, request: wire.Request, reply: Reply) -> None:
        """A fetch by the broker that the request names."""
        try:
            session, is_full = self._open(request, reply.version >= TOPIC_IDS_SINCE)
        except Refusal as refusal:
            reply.complete(fetch_response(reply.version, reply.correlation_id, 0, refusal.code, []))
            return
        session.fetch(request, reply, is_full=is_full)

    def became_ready(self, session: "ReplicaSession") -> None:
        if not self._ready:
            self.node.env.network.end_turn_soon()
        self._ready.append(session)

    def answer_ready(self) -> None:
        """At the end of a turn: those whose partitions grew in it are answered."""
        ready, self._ready = self._ready, []
        for session in ready:
            session.answer()

    def forget(self, session: "ReplicaSession") -> None:
        self._sessions.pop(session.id, None)

    def _open(self, request: wire.Request, uses_ids: bool) -> tuple["ReplicaSession", bool]:
        node, epoch = _who(request)
        if request.session_epoch in (FULL_AND_NONE, FULL_AND_NEW):
            # A broker has one session with us: whoever begins another has lost the first.
            for old in [s for s in self._sessions.values() if s.node == node]:
                old.close()
            session = ReplicaSession(self, node, uses_ids)
            if request.session_epoch == FULL_AND_NEW:
                session.id = self._new_id()
                self._sessions[session.id] = session
            session.broker_epoch = epoch
            return session, True
        known = self._sessions.get(request.session_id)
        if known is None or known.node != node:
            raise Refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if request.session_epoch != known.epoch:
            raise Refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if known.uses_ids != uses_ids:
            raise Refusal(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        known.epoch = 1 if known.epoch == EPOCH_MAX else known.epoch + 1
        known.broker_epoch = epoch
        return known, False

    def _new_id(self) -> int:
        while True:
            session_id = 1 + self.node.env.random.randrange(2**31 - 2)
            if session_id not in self._sessions:
                return session_id


class _Entry:
    """One partition of a session."""

    __slots__ = ("is_asked", "is_held_up", "log_start_offset", "partition", "session", "wanted")

    def __init__(self, session: "ReplicaSession", wanted: Wanted) -> None:
        self.session = session
        self.wanted = wanted
        self.is_held_up = False  # By a throttle.
        self.log_start_offset = -1  # Of the follower's log.
        self.is_asked = True  # What it asks for has not been noted yet.
        self.partition: ReplicatedPartition | None = None  # Where it watches.

    def grew(self) -> None:
        self.session.changed(self)
        self.session.wake()

    def moved(self) -> None:
        """The high watermark; that can wait for the next answer."""
        self.session.changed(self)

    def watch(self, partition: ReplicatedPartition | None) -> None:
        if self.partition is partition:
            return
        if self.partition is not None:
            self.partition.followers_watching.pop(self, None)
        if partition is not None:
            partition.followers_watching[self] = None
        self.partition = partition


class ReplicaSession:
    def __init__(self, sessions: ReplicaSessions, node: NodeId, uses_ids: bool) -> None:
        self.id = 0
        self.epoch = 1
        self.node = node
        self.uses_ids = uses_ids
        self.broker_epoch = -1
        self._sessions = sessions
        self._entries: dict[Key, _Entry] = {}
        self._changed: dict[_Entry, None] = {}  # To be looked at before the next answer.
        self._request: wire.Request
        self._reply: Reply | None = None  # Of the fetch that waits.
        self._is_full = False
        self._is_ready = False
        self._timer: TimerHandle | None = None
        self._on_closed: Callable[[], None] = self.close

    def fetch(self, request: wire.Request, reply: Reply, *, is_full: bool) -> None:
        self.answer()  # Whoever asks again does not wait for the last answer any more.
        for topic in request.topics:
            name = topic.topic_id if self.uses_ids else topic.topic
            for asked in topic.partitions:
                self._ask(name, topic, asked)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.uses_ids else forgotten.topic
            for index in forgotten.partitions:
                self._drop((name, index))
        self._request, self._reply, self._is_full = request, reply, is_full
        fetched, size = self._look()
        if (
            is_full
            or request.max_wait_ms <= 0
            or size >= request.min_bytes
            or any(part.error_code or part.diverging for part in fetched)
        ):
            self._send(fetched)
            return
        for part in fetched:  # Nothing but how far all is committed: it waits for company.
            self._changed[self._entries[self._key(part.wanted)]] = None
        self._timer = self._sessions.node.call_later(request.max_wait_ms, self.answer)
        reply.connection.on_closed.append(self._on_closed)

    def changed(self, entry: _Entry) -> None:
        self._changed[entry] = None

    def wake(self) -> None:
        if self._reply is not None and not self._is_ready:
            self._is_ready = True
            self._sessions.became_ready(self)

    def answer(self) -> None:
        """Answer the fetch that waits, if one does, with what there is."""
        self._is_ready = False
        if self._reply is not None:
            self._send(self._look()[0])

    def close(self) -> None:
        """The other broker is gone, or has begun another session."""
        self._stop_waiting()
        self._reply = None
        for key in list(self._entries):
            self._drop(key)
        self._sessions.forget(self)

    def _ask(self, name: str | bytes, topic: wire.FetchTopic, asked: wire.FetchPartition) -> None:
        key = (name, asked.partition)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(self, Wanted(topic.topic, topic.topic_id, asked))
        else:
            entry.wanted.update(asked)
            entry.is_asked = True
        entry.log_start_offset = asked.log_start_offset
        self._changed[entry] = None

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            entry.watch(None)
            self._changed.pop(entry, None)

    def _key(self, wanted: Wanted) -> Key:
        return (wanted.topic_id if self.uses_ids else wanted.topic, wanted.index)

    def _look(self) -> tuple[list[Fetched], int]:
        """What there is to tell of all that changed, and how many bytes of records that is."""
        left, size = self._request.max_bytes, 0
        fetched, later = [], []
        for entry in self._changed:
            part = Fetched(entry.wanted)
            entry.is_held_up = False
            try:
                self._read(entry, part, left, at_least_one=size == 0)
            except Refusal as refusal:
                part.error_code, part.diverging = refusal.code, None
            except (OSError, Damaged) as error:
                assert entry.partition is not None, "it was read from"
                self._sessions.partitions.read_failed(entry.partition, error)
                part.error_code = ErrorCode.KAFKA_STORAGE_ERROR
            if part.records is not None:
                part.records.owner = entry.partition
                size += part.records.size
                left = max(left - part.records.size, 0)
            elif entry.is_held_up or (not part.error_code and part.diverging is None and left == 0):
                later.append(entry)  # It has its turn in the next answer.
            if self._is_full or _is_news(part):
                fetched.append(part)
        self._changed = dict.fromkeys(later)
        return fetched, size

    def _read(self, entry: _Entry, part: Fetched, left: int, *, at_least_one: bool) -> None:
        wanted = entry.wanted
        partition = self._sessions.partitions.led(wanted.topic, wanted.topic_id, wanted.index)
        if not isinstance(partition, ReplicatedPartition):
            raise Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # Nobody else has a replica of it.
        partition.check_epoch(wanted.current_leader_epoch)
        entry.watch(partition)
        log, offset = partition.log, wanted.fetch_offset
        if wanted.last_fetched_epoch >= 0:
            part.diverging = divergence(
                partition, fetch_offset=offset, last_fetched_epoch=wanted.last_fetched_epoch
            )
        if part.diverging is None:
            if not log.log_start_offset <= offset <= log.end_offset:
                raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
            if entry.is_asked:
                entry.is_asked = False
                partition.fetched_by(self.node, offset, self.broker_epoch, entry.log_start_offset)
        part.high_watermark = partition.high_watermark
        part.last_stable_offset = partition.last_stable_offset
        part.log_start_offset = log.log_start_offset
        if part.diverging is not None:
            return
        bytes_max = min(wanted.bytes_max, left)
        if offset == log.end_offset or (bytes_max == 0 and not at_least_one):
            return
        now = self._sessions.node.now
        if partition.is_held_up(self.node, now):
            entry.is_held_up = True
            return
        part.records = log.read(
            offset, bytes_max, end_offset=log.end_offset, at_least_one=at_least_one
        )
        if partition.leader_throttle is not None and part.records is not None:
            partition.leader_throttle.record(part.records.size, now)

    def _send(self, fetched: list[Fetched]) -> None:
        reply = self._reply
        assert reply is not None, "somebody waits for it"
        self._stop_waiting()
        self._reply = None
        for part in fetched:
            part.wanted.told_high_watermark = part.high_watermark
            part.wanted.told_log_start_offset = part.log_start_offset
            if part.records is not None:
                self._sessions.metrics.bytes_out += part.records.size
        reply.complete(fetch_response(reply.version, reply.correlation_id, self.id, 0, fetched))

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reply is not None and self._on_closed in self._reply.connection.on_closed:
            self._reply.connection.on_closed.remove(self._on_closed)


def _who(request: wire.Request) -> tuple[NodeId, int]:
    state = request.replica_state
    if state.replica_id >= 0:
        return NodeId(state.replica_id), state.replica_epoch
    return NodeId(request.replica_id), -1


def _is_news(part: Fetched) -> bool:
    wanted = part.wanted
    return bool(
        part.records is not None
        or part.error_code
        or part.diverging
        or part.high_watermark != wanted.told_high_watermark
        or part.log_start_offset != wanted.told_log_start_offset
    )
