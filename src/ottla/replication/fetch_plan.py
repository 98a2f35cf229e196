"""What one broker fetches from another: one incremental session (KIP-227) for all partitions.

A request names only the partitions whose state changed since the last one, so a pair of brokers
with thousands of quiet partitions exchanges a few bytes. A request usually waits for the answer to
the last one; one more may be sent before, when there are new partitions to fetch, and makes the
leader answer the first at once. Answers come in the order of the requests.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from ottla.model.errors import ErrorCode
from ottla.model.types import Monotonic, NodeId, Offset, Uuid
from ottla.protocol.messages import fetch as wire
from ottla.replication.follower import Follower

Key = tuple[Uuid, int]  # A topic's id, and the index of a partition.

NEW_SESSION: Final = 0
EPOCH_MAX: Final = 2**31 - 1


class Limits(NamedTuple):
    wait_ms_max: int = 500
    bytes_min: int = 1
    bytes_max: int = 10_485_760
    partition_bytes_max: int = 1_048_576


class Asked(NamedTuple):
    """What the leader was last asked for a partition."""

    leader_epoch: int
    offset: Offset
    last_epoch: int
    log_start_offset: Offset


# The session has the partition, but the leader does not look at it before it is asked anew.
_REFUSED: Final = Asked(-1, -1, -1, -1)


class FetchPlan:
    def __init__(self, node: NodeId, limits: Limits) -> None:
        self._node = node
        self._limits = limits
        self._followed: dict[Key, Follower] = {}
        self._changed: dict[Key, None] = {}  # To be looked at for the next request, in order.
        self._delayed: dict[Key, None] = {}  # Those to be looked at again later.
        self._in_session: dict[Key, Asked] = {}
        self._session_id = 0
        self._session_epoch = NEW_SESSION  # Of the next request.
        self._under_way: deque[tuple[bool, frozenset[Key]]] = deque()  # New? And what it asks.

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
        """Something else than an answer changed what to ask for."""
        self._changed[key] = None

    def next_retry_at(self) -> Monotonic | None:
        """When a partition that was left alone is to be fetched again."""
        times = [self._followed[key].retry_at for key in self._delayed]
        return min((at for at in times if at is not None), default=None)

    def next_request(self, broker_epoch: int, now: Monotonic) -> wire.Request | None:
        """What to send now; None while there is nothing to fetch, or nothing new to add."""
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
        """What each partition that the answer names got, with what it had been asked."""
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
                # What it asks next is looked at when whoever drives us has acted on this.
                self._changed[key] = None
                if follower is None or asked is None or key in later:
                    continue  # It was given up, or asked anew, while the answer was on its way.
                if part.error_code:
                    self._in_session[key] = _REFUSED
                if asked.leader_epoch == follower.leader_epoch:
                    yield key, follower, asked, part

    def lost(self) -> None:
        """No answer will come: the leader may or may not have the session, so begin a new one."""
        self._session_id, self._session_epoch = 0, NEW_SESSION
        self._under_way.clear()

    @property
    def is_under_way(self) -> bool:
        return bool(self._under_way)

    def _refused(self, code: int) -> None:
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = 0
        self._session_epoch = NEW_SESSION  # With the old id, if there is one: that is closed.

    def _look(
        self, now: Monotonic
    ) -> tuple[dict[Uuid, list[wire.FetchPartition]], dict[Uuid, list[int]]]:
        """Bring the session up to date: what it asks anew, and what it does not ask any more."""
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
            has_failed = follower.retry_at is not None  # What came was of no use.
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
