"""A partition that this broker leads: its log, how far it is committed, and who waits for it.

Appends are staged during a turn and written by one `flush` at its end; only then does the high
watermark move, and only then do those who wait hear of it. Reading and checking belong to the log,
the wire to the handlers.
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import Offset, TopicPartition, Uuid, WallTime
from ottla.records.admission import AdmissionPolicy
from ottla.records.batch import LOG_APPEND_TIME, TRANSACTIONAL, Batch, PlacedBatch
from ottla.storage.log import Log
from ottla.storage.producer_state import Duplicate

logger = logging.getLogger(__name__)


class Appending(Protocol):
    """Whoever staged a batch and waits for its end."""

    @property
    def acks_all(self) -> bool:
        """Whether every in-sync replica must hold the batch first, or only this broker."""

    def appended(self, partition: "Partition") -> None: ...
    def failed(self, partition: "Partition", code: ErrorCode) -> None: ...


class Watching(Protocol):
    """Whoever waits for a partition to have more to read."""

    def grew(self, partition: "Partition") -> None: ...


class Syncs(Protocol):
    def soon(self, partition: "Partition") -> None:
        """Sync its log; `committed` or `not_committed` follows."""


class Registry(Protocol):
    """What a partition tells of itself to those who have all of them."""

    @property
    def sync(self) -> Syncs: ...
    def has_staged(self, partition: "Partition") -> None: ...
    def write_failed(self, partition: "Partition", error: OSError | Damaged) -> None: ...
    def read_failed(self, partition: "Partition", error: OSError | Damaged) -> None: ...


class Partition:
    __slots__ = (
        "_registry",
        "_staged",
        "_waiting",
        "high_watermark",
        "is_synced_before_reply",
        "leader_epoch",
        "log",
        "name",
        "policy",
        "topic_id",
        "watching",
    )

    def __init__(
        self,
        name: TopicPartition,
        topic_id: Uuid,
        log: Log,
        policy: AdmissionPolicy,
        is_synced_before_reply: bool,
        registry: "Registry",
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.policy = policy
        self.is_synced_before_reply = is_synced_before_reply
        self.leader_epoch = -1
        # Alone in its ISR: all it holds is committed, once it is on disk if replies wait for that.
        self.high_watermark: Offset = log.end_offset
        if is_synced_before_reply:
            self.high_watermark = max(log.recovery_point, min(log.high_watermark, log.end_offset))
        self.watching: dict[Watching, None] = {}
        self._registry = registry
        self._staged: list[tuple[Appending, Offset]] = []
        self._waiting: deque[tuple[Appending, Offset]] = deque()

    @property
    def is_leader(self) -> bool:
        return True

    @property
    def is_readable(self) -> bool:
        """Whether consumers may fetch from it: it leads or follows."""
        return True

    def nearest_replica(self, rack: str, offset: Offset) -> int | None:  # noqa: ARG002
        """Another replica that is nearer to a consumer in `rack`, if one has what it asks for."""
        return None

    @property
    def low_watermark(self) -> Offset:
        """Nobody who lives has anything below this offset any more."""
        return self.log.log_start_offset

    def log_start_moved(self) -> None:
        """Whoever follows us is to know; here nobody does."""

    @property
    def is_known_to_leader(self) -> bool:
        """Whether its leader has heard how much of it is here."""
        return True

    @property
    def is_slow(self) -> bool:
        """Whether an append may have to wait for more than this turn."""
        return self.is_synced_before_reply

    @property
    def is_under_min_isr(self) -> bool:
        return False

    @property
    def is_high_watermark_known(self) -> bool:
        return True

    def check_enough_replicas(self) -> None:
        """Refuse what asks for more in-sync replicas than there are: here one is enough."""

    def lead(self, leader_epoch: int) -> None:
        """Lead from here on in this epoch, which begins where the log ends."""
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.log.epochs.assign(leader_epoch, self.log.end_offset)
            if self.high_watermark < self.log.end_offset:
                self._registry.sync.soon(self)

    def append(
        self, batch: Batch, appending: Appending, *, is_client: bool = True
    ) -> tuple[Offset, int]:
        """Stage a batch; `appending` hears of its end. Returns its offset and append time.

        `is_client` False is for coordinators, whose transactional batches bear no sequence.
        """
        if batch.attributes & TRANSACTIONAL and is_client:
            # What Kafka answers to a transactional batch whose request names no transaction.
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            raise Refusal(code, "Transactions are not served yet.")
        log = self.log
        try:
            base_offset = log.stage(batch, self.leader_epoch, is_client=is_client)
            append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else -1
        except Duplicate as duplicate:
            # It may still be staged, so its answer goes through the same flush.
            base_offset, append_time = duplicate.base_offset, duplicate.log_append_time
        if not self._staged:
            self._registry.has_staged(self)
        self._staged.append((appending, log.staged_end))
        return base_offset, append_time

    def append_run(self, batches: Sequence[PlacedBatch], size: int, appending: Appending) -> None:
        """Stage plain batches that have their offsets already and are `size` bytes together."""
        log = self.log
        log.stage_placed(batches, size)
        if not self._staged:
            self._registry.has_staged(self)
        self._staged.append((appending, log.staged_end))

    def flush(self, now: WallTime) -> None:
        staged, self._staged = self._staged, []
        if not staged:
            return  # All were told that the partition is gone: nothing of it may be written.
        try:
            self.log.flush(now)
        except (OSError, Damaged) as error:
            self._flush_failed(staged, error)
            return
        if self.is_synced_before_reply:
            self._waiting.extend(staged)
            self._registry.sync.soon(self)
            return
        self.high_watermark = self.log.end_offset
        for appending, _ in staged:
            appending.appended(self)
        if self.watching:
            self._tell_watching()

    def _flush_failed(
        self, staged: list[tuple[Appending, Offset]], error: OSError | Damaged
    ) -> None:
        logger.error("cannot append to %s: %s", self.log.directory, error)
        self._registry.write_failed(self, error)
        for appending, _ in staged:
            appending.failed(self, ErrorCode.KAFKA_STORAGE_ERROR)

    def unreadable(self, error: OSError | Damaged) -> None:
        """What a fetch was about to send could not be read."""
        self._registry.read_failed(self, error)

    def committed(self, offset: Offset) -> None:
        """Everything below `offset` is as durable as this broker was asked to make it."""
        self.high_watermark = max(self.high_watermark, offset)
        waiting = self._waiting
        while waiting and waiting[0][1] <= self.high_watermark:
            waiting.popleft()[0].appended(self)
        if self.watching:
            self._tell_watching()

    def not_committed(self) -> None:
        """A sync failed: whoever waits for it may not rely on its bytes."""
        waiting = list(self._waiting)
        self._waiting.clear()
        for appending, _ in waiting:
            appending.failed(self, ErrorCode.KAFKA_STORAGE_ERROR)

    def fail_waiting(self, code: ErrorCode) -> None:
        """Nobody who waits here will be served any more."""
        failing = [*self._waiting, *self._staged]
        self._waiting.clear()
        self._staged = []
        for appending, _ in failing:
            appending.failed(self, code)
        self._tell_watching()

    def check_epoch(self, current_leader_epoch: int) -> None:
        """KIP-320: a client that knows another leader epoch than ours is told so."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise Refusal(ErrorCode.FENCED_LEADER_EPOCH)
        raise Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def epoch_end_offset(self, leader_epoch: int) -> tuple[int, Offset]:
        """The largest known epoch up to `leader_epoch`, and where it ends; -1 for neither."""
        if leader_epoch == self.leader_epoch:
            return leader_epoch, self.log.end_offset
        return self.log.epoch_end_offset(leader_epoch)

    @property
    def last_stable_offset(self) -> Offset:
        return self.log.last_stable_offset(self.high_watermark)

    def _tell_watching(self) -> None:
        for watching in list(self.watching):
            watching.grew(self)
