"""Incremental fetch sessions (KIP-227): a broker remembers what a client fetches.

A session lists partitions in the order in which they are served; one that gave data goes to the
end, so that none starves behind a busy one. The number of sessions is bounded; the one that was
not used for the longest time makes room, once it has been idle for long enough.

A short request is answered for all of its session's partitions. So a session has no more of them
than exist, and a few that need not, and all sessions together take at most `SESSIONS_BYTES_MAX`:
beyond that a client gets no session, and names all of its partitions in each fetch.
"""

from collections.abc import Callable
from typing import Final

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Monotonic, Offset, Uuid
from ottla.protocol.messages import fetch as wire

FULL_AND_NONE: Final = -1  # A fetch of everything named, that wants no session.
FULL_AND_NEW: Final = 0
IDLE_MS_MIN: Final[Millis] = 120_000  # A session used more recently is not taken away.
SESSIONS_BYTES_MAX: Final = 128 << 20
WANTED_BYTES: Final = 512  # One partition of a session, without its topic's name.
# Of one session, beyond as many as there are: topics that are deleted, or not made yet.
WANTED_FREE: Final = 1000
SESSION_ID_MAX: Final = 2**31 - 1
EPOCH_MAX: Final = 2**31 - 1

Key = tuple[str | Uuid, int]


class Wanted:
    """One partition of a fetch, and what its client was last told about it."""

    __slots__ = (
        "bytes_max",
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "told_high_watermark",
        "told_log_start_offset",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: Uuid, asked: wire.FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = asked.partition
        self.told_high_watermark: Offset = -1
        self.told_log_start_offset: Offset = -1
        self.update(asked)

    def update(self, asked: wire.FetchPartition) -> None:
        self.fetch_offset: Offset = asked.fetch_offset
        self.bytes_max = asked.partition_max_bytes
        self.current_leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch


class FetchSession:
    __slots__ = ("bytes", "epoch", "id", "used_at", "uses_ids", "wanted")

    def __init__(self, session_id: int, uses_ids: bool, now: Monotonic) -> None:
        self.id = session_id
        self.epoch = 1
        self.uses_ids = uses_ids
        self.used_at = now
        self.bytes = 0
        self.wanted: dict[Key, Wanted] = {}

    def update(self, request: wire.Request) -> None:
        for topic in request.topics:
            name = topic.topic_id if self.uses_ids else topic.topic
            for asked in topic.partitions:
                known = self.wanted.get((name, asked.partition))
                if known is None:
                    wanted = Wanted(topic.topic, topic.topic_id, asked)
                    self.wanted[name, asked.partition] = wanted
                    self.bytes += WANTED_BYTES + len(topic.topic)
                else:
                    known.update(asked)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if self.uses_ids else forgotten.topic
            for index in forgotten.partitions:
                if self.wanted.pop((name, index), None) is not None:
                    self.bytes -= WANTED_BYTES + len(forgotten.topic)

    def served(self, wanted: Wanted) -> None:
        """This partition gave data: others come before it next time."""
        key: Key = (wanted.topic_id if self.uses_ids else wanted.topic, wanted.index)
        if key in self.wanted:
            self.wanted[key] = self.wanted.pop(key)


class FetchSessions:
    def __init__(
        self,
        sessions_max: int,
        random_below: Callable[[int], int],
        existing: Callable[[], int],
    ) -> None:
        """`existing` counts the partitions of the cluster."""
        self._sessions: dict[int, FetchSession] = {}  # The least recently used comes first.
        self._bytes = 0  # Of all sessions.
        self._sessions_max = sessions_max
        self._random_below = random_below
        self._existing = existing

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, request: wire.Request, uses_ids: bool, now: Monotonic
    ) -> tuple[FetchSession, list[Wanted], bool]:
        """The session of a request, what it fetches, and whether the answer names all of it."""
        if request.session_epoch in (FULL_AND_NONE, FULL_AND_NEW):
            self._drop(request.session_id)
            session = FetchSession(0, uses_ids, now)
            session.update(request)
            is_wanted = request.session_epoch == FULL_AND_NEW and bool(session.wanted)
            is_wanted = is_wanted and not self._names_too_many(session)
            if is_wanted and self._make_room(now, session.bytes):
                session.id = self._new_id()
                self._sessions[session.id] = session
                self._bytes += session.bytes
            return session, list(session.wanted.values()), True
        session = self._continue(request, uses_ids)
        session.used_at = now
        self._bytes -= session.bytes
        before = len(session.wanted)
        session.update(request)
        self._bytes += session.bytes
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        has_grown = len(session.wanted) > before
        if self._bytes > SESSIONS_BYTES_MAX or (has_grown and self._names_too_many(session)):
            self._drop(session.id)
            raise Refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.wanted:
            self._drop(session.id)
            session.id = 0
        return session, list(session.wanted.values()), False

    def _continue(self, request: wire.Request, uses_ids: bool) -> FetchSession:
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            raise Refusal(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._sessions[session.id] = session
        if request.session_epoch != session.epoch:
            raise Refusal(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if uses_ids != session.uses_ids:
            raise Refusal(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        return session

    def _names_too_many(self, session: FetchSession) -> bool:
        count = len(session.wanted)
        return count > WANTED_FREE and count > WANTED_FREE + self._existing()

    def _make_room(self, now: Monotonic, count: int) -> bool:
        """Room for one more session of `count` bytes, if need be in place of idle ones."""
        while not self._has_room(count):
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now - oldest.used_at < IDLE_MS_MIN:
                return False
            self._drop(oldest.id)
        return True

    def _has_room(self, count: int) -> bool:
        is_small = self._bytes + count <= SESSIONS_BYTES_MAX
        return is_small and len(self._sessions) < self._sessions_max

    def _drop(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._bytes -= session.bytes

    def _new_id(self) -> int:
        while True:
            session_id = 1 + self._random_below(SESSION_ID_MAX - 1)
            if session_id not in self._sessions:
                return session_id
