"""The assigned partitions: queued records, the task in progress, the offset handled so far.

Plain state, changed only by the polling thread. A `Task` is the only object shared with a worker:
the worker increments `done` and sets the outcome; the polling thread may cancel it.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from ottla.client.message import Message
from ottla.model.types import Offset, TopicPartition

PENDING_MAX = 4_000
PENDING_BYTES_MAX = 4 * 1024 * 1024
RECORD_OVERHEAD_BYTES = 100
QUICK_S, SLOW_S = 0.05, 0.2


class Task:
    """Records of one partition, handled in order by one worker."""

    __slots__ = (
        *("begun_at", "done", "failure", "failures", "fatal", "is_cancelled", "is_over"),
        *("messages", "over_at"),
    )

    def __init__(self, messages: list[Message], failures: int) -> None:
        self.messages = messages
        self.failures = failures  # Number of failures of the first remaining record.
        self.done = 0
        self.failure: Exception | None = None  # Why the next record must be retried later.
        self.fatal: BaseException | None = None  # Why the consumer must end.
        self.is_cancelled = False
        self.is_over = False
        self.begun_at = self.over_at = 0.0


class Lane:
    """One assigned partition."""

    def __init__(self, place: TopicPartition, before: Task | None) -> None:
        self.place = place
        self.is_paused = False
        self.held_since: float | None = None  # When it became full.
        self.task: Task | None = None
        self.done_offset: Offset | None = None  # All records below it are handled.
        self.committed_offset: Offset | None = None
        self.ready_at = 0.0
        self.risked = 1  # With at-most-once: number of records committed ahead of the handler.
        # A task of an earlier assignment of this partition, still in progress.
        self._before = before
        self._pending: deque[Message] = deque()
        self._pending_bytes = 0
        self._failures = 0
        self._counted = 0

    @property
    def has_pending(self) -> bool:
        return bool(self._pending)

    @property
    def is_full(self) -> bool:
        return len(self._pending) >= PENDING_MAX or self._pending_bytes >= PENDING_BYTES_MAX

    @property
    def has_room(self) -> bool:
        few = len(self._pending) <= PENDING_MAX * 3 // 4
        return few and self._pending_bytes <= PENDING_BYTES_MAX * 3 // 4

    @property
    def uncommitted_offset(self) -> Offset | None:
        """The offset handled so far, if not committed yet; with at-most-once it always is."""
        if self.done_offset is None or self.done_offset <= (self.committed_offset or -1):
            return None
        return self.done_offset

    def is_ready(self, now: float) -> bool:
        is_free = self.task is None and (self._before is None or self._before.is_over)
        return is_free and bool(self._pending) and self.ready_at <= now

    def received(self, message: Message) -> None:
        self._pending.append(message)
        self._pending_bytes += _size(message)

    def next_task(self, messages_max: int) -> Task:
        assert self.task is None, "one at a time, or records would overtake each other"
        self.task = Task(list(islice(self._pending, messages_max)), self._failures)
        self._counted = 0
        return self.task

    def untake(self) -> None:
        """The task was not started after all."""
        self.task = None

    def progress(self) -> None:
        """Update the handled offset from the task."""
        assert self.task is not None, "something is under way"
        done = self.task.done
        for _ in range(done - self._counted):
            message = self._pending.popleft()
            self._pending_bytes -= _size(message)
            self.done_offset = message.offset + 1
        self._counted = done

    def settle(self) -> int:
        """Finish the task; return the number of failures of the record that is now first."""
        task = self.task
        assert task is not None, "something was under way"
        assert task.is_over, "only what is over is settled"
        self.progress()
        self._failures = task.failures if task.failure is not None else 0
        self.task = None
        return self._failures

    def under_way(self) -> Task | None:
        """The task that a worker may still run after this lane is dropped."""
        if self.task is not None and not self.task.is_over:
            return self.task
        if self._before is not None and not self._before.is_over:
            return self._before
        return None

    def adapt_risk(self, took_s: float, risked_max: int) -> None:
        """Commit further ahead of a fast handler, less far ahead of a slow one."""
        if took_s < QUICK_S:
            self.risked = min(self.risked * 2, risked_max)
        elif took_s > SLOW_S:
            self.risked = max(self.risked // 2, 1)


class Lanes:
    """All lanes, by partition."""

    def __init__(self) -> None:
        self._lanes: dict[TopicPartition, Lane] = {}
        self._left: dict[TopicPartition, Task] = {}

    def __iter__(self) -> Iterator[Lane]:
        return iter(list(self._lanes.values()))

    def get(self, place: TopicPartition) -> Lane | None:
        return self._lanes.get(place)

    def assigned(self, places: Iterable[TopicPartition]) -> None:
        for place in places:
            self._lanes[place] = Lane(place, self._left.pop(place, None))

    def dropped(self, places: Iterable[TopicPartition]) -> None:
        """Revoked: drop the queued records."""
        for place in places:
            lane = self._lanes.pop(place, None)
            task = lane.under_way() if lane is not None else None
            if task is not None:
                self._left[place] = task

    def ready(self, now: float) -> list[Lane]:
        """Lanes with work, the longest waiting first."""
        return sorted(
            (lane for lane in self._lanes.values() if lane.is_ready(now)),
            key=lambda lane: lane.ready_at,
        )


def _size(message: Message) -> int:
    return len(message.value or b"") + len(message.key or b"") + RECORD_OVERHEAD_BYTES
