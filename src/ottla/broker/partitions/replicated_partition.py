"""A partition with replicas on other brokers: led here, followed here, or waiting for a leader.

What is appended is committed once the in-sync replicas hold it; who waits for that (acks=all) is
answered then, and consumers see no further. The rules are those of `ottla.replication`; here they
meet the log, those who wait, and the other brokers.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, assert_never

from ottla.broker.partitions.partition import Appending, Partition, Registry
from ottla.metadata.image.cluster import RECOVERING
from ottla.metadata.image.cluster import Partition as PartitionState
from ottla.model.errors import Damaged, ErrorCode
from ottla.model.types import Millis, Monotonic, NodeId, Offset, WallTime
from ottla.replication.follower import Follower
from ottla.replication.leader import Assignment, Committed, Effect, Leader, ProposeIsr
from ottla.replication.throttle import Throttle
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.model.types import TopicPartition, Uuid
    from ottla.records.admission import AdmissionPolicy

logger = logging.getLogger(__name__)


class FollowerWatching(Protocol):
    """A broker that fetches from us hears when there is more, or something else, to fetch."""

    def grew(self) -> None: ...
    def moved(self) -> None: ...


class DeletionWaiting(Protocol):
    """Whoever waits until no replica has what it deleted."""

    def low_watermark_moved(self, low_watermark: Offset) -> None: ...
    def failed(self, code: ErrorCode) -> None: ...


class ReplicationSettings(Protocol):
    replica_lag_time_max_ms: Millis
    replica_fetch_backoff_ms: Millis


class FollowedLog:
    """What a follower has to know of its log."""

    __slots__ = ("_log",)

    def __init__(self, log: Log) -> None:
        self._log = log

    @property
    def log_start_offset(self) -> Offset:
        return self._log.log_start_offset

    @property
    def end_offset(self) -> Offset:
        return self._log.end_offset

    @property
    def last_epoch(self) -> int:
        return self._log.epochs.latest

    def epoch_end_offset(self, epoch: int) -> tuple[int, Offset]:
        return self._log.epoch_end_offset(epoch)


class ReplicatedPartition(Partition):
    __slots__ = (
        "_acks_all",
        "_is_alive",
        "_is_eligible",
        "_nearest",
        "_node",
        "_now",
        "_propose",
        "_settings",
        "deletions",
        "follower",
        "follower_throttle",
        "followers_watching",
        "isr_min",
        "leader",
        "leader_throttle",
    )

    def __init__(
        self,
        name: "TopicPartition",
        topic_id: "Uuid",
        log: Log,
        policy: "AdmissionPolicy",
        is_synced_before_reply: bool,
        registry: "Registry",
        *,
        node: NodeId,
        high_watermark: Offset,
        isr_min: int,
        settings: ReplicationSettings,
        now: Callable[[], Monotonic],
        is_eligible: Callable[[NodeId, int], bool],
        is_alive: Callable[[NodeId], bool],
        propose: Callable[["ReplicatedPartition", ProposeIsr], None],
        nearest: Callable[[str, set[NodeId]], NodeId | None],
    ) -> None:
        """`nearest` picks one of the nodes that are in the rack of a consumer."""
        super().__init__(name, topic_id, log, policy, is_synced_before_reply, registry)
        self.high_watermark = min(max(high_watermark, log.log_start_offset), log.end_offset)
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.followers_watching: dict[FollowerWatching, None] = {}
        self.leader_throttle: Throttle | None = None  # For followers that are not in sync.
        self.follower_throttle: Throttle | None = None
        self.deletions: dict[DeletionWaiting, None] = {}
        self.isr_min = isr_min
        self._acks_all: deque[tuple[Appending, Offset]] = deque()
        self._node = node
        self._settings = settings
        self._now = now
        self._is_eligible = is_eligible
        self._is_alive = is_alive
        self._propose = propose
        self._nearest = nearest

    @property
    def is_leader(self) -> bool:
        return self.leader is not None

    @property
    def is_readable(self) -> bool:
        return self.leader is not None or self.follower is not None

    def nearest_replica(self, rack: str, offset: Offset) -> int | None:
        if self.leader is None:
            return None
        leader = self.leader
        others = (node for node in leader.followers if node in leader.isr)
        holders = {n for n in others if leader.start_of(n) <= offset <= leader.end_of(n)}
        return self._nearest(rack, holders)

    @property
    def is_known_to_leader(self) -> bool:
        return self.is_leader or (self.follower is not None and self.follower.is_known_to_leader)

    @property
    def is_slow(self) -> bool:
        return True

    @property
    def is_under_min_isr(self) -> bool:
        return self.leader is not None and self.leader.is_under_min_isr

    @property
    def is_high_watermark_known(self) -> bool:
        return self.leader is None or self.leader.is_high_watermark_known

    @property
    def low_watermark(self) -> Offset:
        own = self.log.log_start_offset
        if self.leader is None:
            return own
        living = filter(self._is_alive, self.leader.followers)
        return min(own, min(map(self.leader.start_of, living), default=own))

    def log_start_moved(self) -> None:
        for watching in list(self.followers_watching):
            watching.grew()

    def check_enough_replicas(self) -> None:
        if self.leader is not None:
            self.leader.check_enough_replicas()

    def set_isr_min(self, isr_min: int) -> None:
        self.isr_min = isr_min
        if self.leader is not None:
            self.leader.isr_min = isr_min
            self._perform(self.leader.tick(self._now()))

    def is_held_up(self, node: NodeId, now: Monotonic) -> bool:
        """Whether a follower has to wait for its records, because its move is throttled."""
        throttle, leader = self.leader_throttle, self.leader
        if throttle is None or leader is None or node in leader.isr:
            return False
        return throttle.is_exceeded(now)

    def lead_replicas(self, state: PartitionState) -> None:
        """Lead as the metadata log says; an epoch begins where the log ends."""
        now, leader = self._now(), self.leader
        if state.leader_epoch > self.leader_epoch or leader is None:
            self.leader_epoch = state.leader_epoch
            self.log.epochs.assign(state.leader_epoch, self.log.end_offset)
        if leader is not None:
            self._perform(leader.assigned(_assignment(state), self.log.end_offset, now))
            return
        self.stand_by()
        self.leader = Leader(
            self._node,
            _assignment(state),
            isr_min=self.isr_min,
            lag_ms_max=self._settings.replica_lag_time_max_ms,
            log_end=self.log.end_offset,
            own_end=self._own_end,
            high_watermark=self.high_watermark,
            is_eligible=self._is_eligible,
            now=now,
        )
        if self._own_end < self.log.end_offset:
            self._registry.sync.soon(self)
        self._perform(self.leader.tick(now))

    def follow(self, leader_epoch: int) -> Follower:
        """Follow whoever leads in this epoch; what was staged under an earlier one is refused."""
        self.stand_by()
        self.leader_epoch = leader_epoch
        self.follower = Follower(
            FollowedLog(self.log),
            leader_epoch,
            self.high_watermark,
            self._settings.replica_fetch_backoff_ms,
        )
        self.follower.throttle = self.follower_throttle
        return self.follower

    def set_throttles(self, *, leader: Throttle | None, follower: Throttle | None) -> None:
        self.leader_throttle, self.follower_throttle = leader, follower
        if self.follower is not None:
            self.follower.throttle = follower

    def stand_by(self) -> None:
        """Neither lead nor follow."""
        was_leader = self.leader is not None
        self.leader = self.follower = None
        # A follower lowers it before a truncation, which this change of role may have prevented.
        self.high_watermark = max(self.high_watermark, self.log.log_start_offset)
        if was_leader:
            self.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            self.log.truncate_to(self.log.end_offset)  # Takes the staged offsets back.

    def flush(self, now: WallTime) -> None:
        staged, self._staged = self._staged, []
        if not staged or self.leader is None:
            return  # All were told that the partition is gone: nothing of it may be written.
        try:
            self.log.flush(now)
        except (OSError, Damaged) as error:
            self._flush_failed(staged, error)
            return
        is_synced = self.is_synced_before_reply
        for waiting in staged:
            if waiting[0].acks_all:
                # What was sent once more may have been committed long ago, and nothing comes after.
                is_committed = waiting[1] <= self.high_watermark
                self._settle(waiting[0]) if is_committed else self._acks_all.append(waiting)
            elif is_synced:
                self._waiting.append(waiting)
            else:
                waiting[0].appended(self)
        for watching in list(self.followers_watching):
            watching.grew()
        if is_synced:
            self._registry.sync.soon(self)
        log_end = self.log.end_offset
        self._perform(self.leader.appended(log_end, self._now(), own_end=self._own_end))

    @property
    def _own_end(self) -> Offset:
        """Where ends what counts as held by us: on the disk, if replies wait for that."""
        return self.log.recovery_point if self.is_synced_before_reply else self.log.end_offset

    def committed(self, offset: Offset) -> None:
        """Everything below `offset` is on our own disk."""
        waiting = self._waiting
        while waiting and waiting[0][1] <= offset:
            waiting.popleft()[0].appended(self)
        if self.leader is not None and self.is_synced_before_reply:
            own_end = min(offset, self.log.end_offset)
            self._perform(self.leader.appended(self.log.end_offset, self._now(), own_end=own_end))

    def not_committed(self) -> None:
        waiting = [*self._waiting, *self._acks_all]
        self._waiting.clear()
        self._acks_all.clear()
        for appending, _ in waiting:
            appending.failed(self, ErrorCode.KAFKA_STORAGE_ERROR)

    def fail_waiting(self, code: ErrorCode) -> None:
        failing, self._acks_all = self._acks_all, deque()
        for appending, _ in failing:
            appending.failed(self, code)
        deletions, self.deletions = self.deletions, {}
        for deletion in deletions:
            deletion.failed(code)
        super().fail_waiting(code)
        for watching in list(self.followers_watching):
            watching.grew()

    def fetched_by(
        self, node: NodeId, offset: Offset, broker_epoch: int, log_start: Offset
    ) -> None:
        """A follower fetches from `offset` on, so it holds what is below, from `log_start` on."""
        leader = self.leader
        assert leader is not None, "only a leader is fetched from by replicas"
        now = self._now()
        self._perform(leader.fetched(node, offset, broker_epoch, now, log_start=log_start))
        if self.deletions:
            self._tell_deletions()

    def reconsider(self) -> None:
        if self.leader is not None:
            self._perform(self.leader.reconsider(self._now()))
            self._tell_deletions()

    def _tell_deletions(self) -> None:
        for deletion in list(self.deletions):
            deletion.low_watermark_moved(self.low_watermark)

    def tick(self) -> None:
        if self.leader is not None:
            self._perform(self.leader.tick(self._now()))

    def isr_decided(self, proposal: ProposeIsr, decided: Assignment) -> None:
        """`decided` does not know the replicas: they are ours."""
        leader = self.leader
        if leader is not None:
            known = decided._replace(replicas=leader.assignment.replicas)
            self._perform(leader.isr_decided(proposal, known, self._now()))

    def isr_refused(self, proposal: ProposeIsr, code: ErrorCode) -> None:
        if self.leader is not None:
            self._perform(self.leader.isr_refused(proposal, code))

    def replicated(self) -> None:
        """The follower appended, cut, or heard how far all is committed."""
        assert self.follower is not None, "only a follower replicates"
        before, self.high_watermark = self.high_watermark, self.follower.high_watermark
        if self.high_watermark > before and self.watching:
            self._tell_watching()

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Committed():
                    self._commit(effect.high_watermark)
                case ProposeIsr():
                    self._propose(self, effect)
                case _:
                    assert_never(effect)

    def _commit(self, high_watermark: Offset) -> None:
        self.high_watermark = high_watermark
        waiting = self._acks_all
        while waiting and waiting[0][1] <= high_watermark:
            self._settle(waiting.popleft()[0])
        if self.watching:
            self._tell_watching()
        for watching in self.followers_watching:
            watching.moved()

    def _settle(self, appending: Appending) -> None:
        if self.is_under_min_isr:
            appending.failed(self, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        else:
            appending.appended(self)


def _assignment(state: PartitionState) -> Assignment:
    return Assignment(
        state.leader_epoch,
        state.partition_epoch,
        state.replicas,
        state.isr,
        state.leader_recovery_state == RECOVERING,
    )
