"""The partitions that a consumer owns: what waits in each, what is under way, how far it is done.

Plain state, changed by the polling thread alone. A `Task` is the one thing it shares with a worker:
the worker counts `done` up and says how it ended; the polling thread may cancel it.
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
        self.failures = failures  # How often the first of those that are left has failed so far.
        self.done = 0
        self.failure: Exception | None = None  # Why the next one is to be tried again later.
        self.fatal: BaseException | None = None  # Why it must not go on at all.
        self.is_cancelled = False
        self.is_over = False
        self.begun_at = self.over_at = 0.0


class Lane:
    """One partition."""

    def __init__(self, place: TopicPartition, before: Task | None) -> None:
        self.place = place
        self.is_paused = False
        self.held_since: float | None = None  # When it was found full.
        self.task: Task | None = None
        self.done_offset: Offset | None = None  # All below it is done.
        self.committed_offset: Offset | None = None
        self.ready_at = 0.0
        self.risked = 1  # With at-most-once: how many records are committed ahead of the handler.
        self._before = before  # We owned it earlier, and a record of then is still under way.
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
        """How far it is done, if that was not committed; with at-most-once, it was before."""
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
        """The task was not begun after all."""
        self.task = None

    def progress(self) -> None:
        """Count what the task has done so far."""
        assert self.task is not None, "something is under way"
        done = self.task.done
        for _ in range(done - self._counted):
            message = self._pending.popleft()
            self._pending_bytes -= _size(message)
            self.done_offset = message.offset + 1
        self._counted = done

    def settle(self) -> int:
        """Take the end of the task; how often the record that now comes first has failed."""
        task = self.task
        assert task is not None, "something was under way"
        assert task.is_over, "only what is over is settled"
        self.progress()
        self._failures = task.failures if task.failure is not None else 0
        self.task = None
        return self._failures

    def under_way(self) -> Task | None:
        """What a worker may still be busy with, once this lane is gone."""
        if self.task is not None and not self.task.is_over:
            return self.task
        if self._before is not None and not self._before.is_over:
            return self._before
        return None

    def adapt_risk(self, took_s: float, risked_max: int) -> None:
        """Commit further ahead of a quick handler, less far ahead of a slow one."""
        if took_s < QUICK_S:
            self.risked = min(self.risked * 2, risked_max)
        elif took_s > SLOW_S:
            self.risked = max(self.risked // 2, 1)


class Lanes:
    """All of them, by partition."""

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
        """Not ours any more: what waits there is forgotten."""
        for place in places:
            lane = self._lanes.pop(place, None)
            task = lane.under_way() if lane is not None else None
            if task is not None:
                self._left[place] = task

    def ready(self, now: float) -> list[Lane]:
        """Those with work, the longest waiting first."""
        return sorted(
            (lane for lane in self._lanes.values() if lane.is_ready(now)),
            key=lambda lane: lane.ready_at,
        )


def _size(message: Message) -> int:
    return len(message.value or b"") + len(message.key or b"") + RECORD_OVERHEAD_BYTES
