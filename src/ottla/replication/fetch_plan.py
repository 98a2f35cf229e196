"""Fetch requests of one broker to another: one incremental session (KIP-227) for all partitions.

A request names only partitions whose fetch state changed since the last one, so two brokers with
thousands of quiet partitions exchange a few bytes. Usually one request is in flight; a second one
may be sent for new partitions, and makes the leader answer the first at once. Responses come in
request order.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic, NodeId, Offset, Uuid
from ottla.protocol.messages import fetch as wire
from ottla.replication.follower import Follower

Key = tuple[Uuid, int]  # Topic id and partition index.

NEW_SESSION: Final = 0
EPOCH_MAX: Final = 2**31 - 1


class Limits(NamedTuple):
    wait_ms_max: int = 500
    bytes_min: int = 1
    bytes_max: int = 10_485_760
    partition_bytes_max: int = 1_048_576


class Asked(NamedTuple):
    """Fetch state of a partition that the leader has."""

    leader_epoch: int
    offset: Offset
    last_epoch: int
    log_start_offset: Offset


# The session has the partition, but the leader ignores it until its fetch state changes.
_REFUSED: Final = Asked(-1, -1, -1, -1)


class FetchPlan:
    def __init__(self, node: NodeId, limits: Limits) -> None:
        self._node = node
        self._limits = limits
        self._followed: dict[Key, Follower] = {}
        self._changed: dict[Key, None] = {}  # To check for the next request, in order.
        self._delayed: dict[Key, None] = {}  # To check again after a backoff.
        self._in_session: dict[Key, Asked] = {}
        self._session_id = 0
        self._session_epoch = NEW_SESSION  # Session epoch of the next request.
        # Requests in flight: whether it opens a session, and its partitions.
        self._under_way: deque[tuple[bool, frozenset[Key]]] = deque()

    def __len__(self) -> int:
        return len(self._followed)

    def follow(self, key: Key, follower: Follower) -> None:
        self._followed[key] = follower
        self._changed[key] = None

    def unfollow(self, key: Key) -> None:
        self._followed.pop(key, None)
        self._delayed.pop(key, None)
        self._changed[key] = None

    def changed(self, key: Key) -> None:
        """The fetch state of `key` changed for another reason than a response."""
        self._changed[key] = None

    def next_retry_at(self) -> Monotonic | None:
        """The earliest retry time of a delayed partition; None if there is none."""
        times = [self._followed[key].retry_at for key in self._delayed]
        return min((at for at in times if at is not None), default=None)

    def next_request(self, broker_epoch: int, now: Monotonic) -> wire.Request | None:
        """The request to send now; None if there is nothing to fetch or to change."""
        if self._under_way and (len(self._under_way) > 1 or self._session_epoch == NEW_SESSION):
            return None
        for key in [key for key in self._delayed if self._followed[key].may_fetch(now)]:
            del self._delayed[key]
            self._changed[key] = None
        if self._session_epoch == NEW_SESSION:
            self._in_session.clear()
            self._changed = dict.fromkeys(self._followed)
        asked, forgotten = self._look(now)
        is_needed = bool(asked or forgotten or (self._in_session and not self._under_way))
        if not is_needed:
            return None
        limits = self._limits
        request = wire.Request(
            replica_state=wire.ReplicaState(self._node, broker_epoch),
            max_wait_ms=limits.wait_ms_max,
            min_bytes=limits.bytes_min,
            max_bytes=limits.bytes_max,
            session_id=self._session_id,
            session_epoch=self._session_epoch,
            topics=[wire.FetchTopic(topic_id=t, partitions=parts) for t, parts in asked.items()],
            forgotten_topics_data=[
                wire.ForgottenTopic(topic_id=t, partitions=indexes)
                for t, indexes in forgotten.items()
            ],
        )
        keys = frozenset((t, part.partition) for t, parts in asked.items() for part in parts)
        self._under_way.append((self._session_epoch == NEW_SESSION, keys))
        if self._session_epoch != NEW_SESSION:
            is_last = self._session_epoch == EPOCH_MAX
            self._session_epoch = 1 if is_last else self._session_epoch + 1
        return request

    def answered(
        self, response: wire.Response
    ) -> Iterator[tuple[Key, Follower, Asked, wire.PartitionData]]:
        """Yield the result of each partition in the response, with the fetch state it answers."""
        was_new, _ = self._under_way.popleft()
        if response.error_code:
            self._refused(response.error_code)
            return
        if was_new:
            self._session_id = response.session_id
            self._session_epoch = 1 if response.session_id else NEW_SESSION
        later = self._under_way[0][1] if self._under_way else frozenset()
        for topic in response.responses:
            for part in topic.partitions:
                key = (topic.topic_id, part.partition_index)
                follower, asked = self._followed.get(key), self._in_session.get(key)
                # Its next fetch state is computed after the caller has processed this result.
                self._changed[key] = None
                if follower is None or asked is None or key in later:
                    # Removed, or its fetch state changed, while the response was in flight.
                    continue
                if part.error_code:
                    self._in_session[key] = _REFUSED
                if asked.leader_epoch == follower.leader_epoch:
                    yield key, follower, asked, part

    def lost(self) -> None:
        """The request got no response: open a new session, since the leader's session is
        unknown.
        """
        self._session_id, self._session_epoch = 0, NEW_SESSION
        self._under_way.clear()

    @property
    def is_under_way(self) -> bool:
        return bool(self._under_way)

    def _refused(self, code: int) -> None:
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = 0
        # The old session id, if any, is sent along, which closes that session.
        self._session_epoch = NEW_SESSION

    def _look(
        self, now: Monotonic
    ) -> tuple[dict[Uuid, list[wire.FetchPartition]], dict[Uuid, list[int]]]:
        """Update the session: partitions with a new fetch state, and those to forget."""
        topics: dict[Uuid, list[wire.FetchPartition]] = {}
        forgotten: dict[Uuid, list[int]] = {}
        for key in self._changed:
            topic_id, index = key
            follower = self._followed.get(key)
            if follower is None or not follower.may_fetch(now):
                if self._in_session.pop(key, None) is not None:
                    forgotten.setdefault(topic_id, []).append(index)
                if follower is not None and follower.retry_at is not None:
                    self._delayed[key] = None
                continue
            asked = _asked(follower)
            has_failed = follower.retry_at is not None  # The last response was an error.
            if has_failed or self._in_session.get(key) != asked:
                self._in_session[key] = asked
                topics.setdefault(topic_id, []).append(self._partition(index, asked))
        self._changed = {}
        return topics, forgotten

    def _partition(self, index: int, asked: Asked) -> wire.FetchPartition:
        return wire.FetchPartition(
            partition=index,
            current_leader_epoch=asked.leader_epoch,
            fetch_offset=asked.offset,
            last_fetched_epoch=asked.last_epoch,
            log_start_offset=asked.log_start_offset,
            partition_max_bytes=self._limits.partition_bytes_max,
        )


def _asked(follower: Follower) -> Asked:
    return Asked(
        follower.leader_epoch,
        follower.fetch_offset,
        follower.last_fetched_epoch,
        follower.log_start_offset,
    )
