"""A follower's reaction to fetch responses: append, truncate, restart at another offset, or wait.

Divergence is found with each fetch (KIP-595): the follower names the epoch of its last record, and
the leader answers with the end offset of that epoch in its own log. So the follower truncates
exactly to the last common record (KIP-101, 279).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from ottla.model.errors import ErrorCode
from ottla.model.types import Millis, Monotonic, Offset
from ottla.replication.throttle import Throttle

UNDEFINED: Final = -1
BACKOFF_MS_MIN: Final = 10


class LogView(Protocol):
    """The part of its own log that a follower needs."""

    @property
    def log_start_offset(self) -> Offset: ...
    @property
    def end_offset(self) -> Offset: ...
    @property
    def last_epoch(self) -> int: ...
    def epoch_end_offset(self, epoch: int) -> tuple[int, Offset]: ...


class Answer(NamedTuple):
    """The leader's response for one partition; the records stay with the shell."""

    error_code: int
    high_watermark: Offset
    log_start_offset: Offset
    has_records: bool
    # Diverging epoch and its end offset in the leader's log.
    diverging: tuple[int, Offset] | None = None


@dataclass(frozen=True, slots=True)
class Append:
    """Append the records, then `Follower.appended`."""


@dataclass(frozen=True, slots=True)
class Truncate:
    offset: Offset  # Remove all records from this offset on, then call `Follower.truncated`.


@dataclass(frozen=True, slots=True)
class AskOffsets:
    """Ask the leader for its log start and end offsets, then call `Follower.leader_offsets`."""


@dataclass(frozen=True, slots=True)
class StartAt:
    offset: Offset  # Empty the log and restart it here: the leader has no records below.


Action = Append | Truncate | AskOffsets | StartAt | None


class State(Enum):
    FETCHING = "fetching"
    ASKING = "asking"  # Waits for the leader's offsets: our fetch offset was out of range.
    FENCED = "fenced"  # Until the metadata log brings a newer leader epoch.


class Follower:
    __slots__ = (
        "_backoff_ms_max",
        "_failures",
        "_log",
        "high_watermark",
        "is_known_to_leader",
        "leader_epoch",
        "leader_high_watermark",
        "retry_at",
        "state",
        "throttle",
    )

    def __init__(
        self, log: LogView, leader_epoch: int, high_watermark: Offset, backoff_ms: Millis
    ) -> None:
        self.leader_epoch = leader_epoch
        self.high_watermark = min(high_watermark, log.end_offset)
        self.is_known_to_leader = (
            False  # The leader has answered a fetch, so it knows our log end offset.
        )
        self.leader_high_watermark: Offset = UNDEFINED
        self.throttle: Throttle | None = None  # Limits fetching while this replica is out of sync.
        self.state = State.FETCHING
        self.retry_at: Monotonic | None = None
        self._log = log
        self._backoff_ms_max = backoff_ms
        self._failures = 0  # Since the last useful response.

    @property
    def fetch_offset(self) -> Offset:
        return self._log.end_offset

    @property
    def log_start_offset(self) -> Offset:
        return self._log.log_start_offset

    @property
    def last_fetched_epoch(self) -> int:
        return self._log.last_epoch

    def first_action(self) -> Truncate | None:
        """Truncate to the high watermark if the log has no epoch history to compare with."""
        if self._log.last_epoch == UNDEFINED and self.high_watermark < self._log.end_offset:
            return Truncate(self.high_watermark)
        return None

    @property
    def is_in_sync(self) -> bool:
        """Whether the log had reached the high watermark at the last response."""
        return self.is_known_to_leader and self.fetch_offset >= self.leader_high_watermark

    def may_fetch(self, now: Monotonic) -> bool:
        if self.throttle is not None and not self.is_in_sync:
            self.retry_at = self.throttle.free_at(now) or self.retry_at
        return self.state is State.FETCHING and (self.retry_at is None or now >= self.retry_at)

    def answered(
        self, answer: Answer, *, asked_offset: Offset, asked_epoch: int, now: Monotonic
    ) -> Action:
        """Process the response to a fetch at `asked_offset`, with last fetched epoch
        `asked_epoch`.
        """
        self.retry_at = None
        is_ours = asked_offset == self._log.end_offset and asked_epoch == self.last_fetched_epoch
        if self.state is not State.FETCHING or not is_ours:
            return None  # Outdated: truncating now could remove records appended since.
        if answer.error_code:
            return self._refused(ErrorCode(answer.error_code), now)
        if answer.diverging is not None:
            return Truncate(self.truncation(*answer.diverging))
        self.is_known_to_leader = True
        self.leader_high_watermark = answer.high_watermark
        if answer.has_records:
            return Append()
        self._processed(answer.high_watermark)
        return None

    def appended(self, high_watermark: Offset) -> None:
        """The records were appended; advance the high watermark as far as our log reaches."""
        self._processed(high_watermark)

    def truncated(self) -> None:
        """The log was truncated; lower the high watermark to its end, or raise it to its start.

        After a restart at a new offset, all records below it are committed and deleted.
        """
        committed = max(self.high_watermark, self._log.log_start_offset)
        self.high_watermark = min(committed, self._log.end_offset)

    def failed(self, now: Monotonic) -> None:
        """The fetch failed or brought nothing: retry after an exponential backoff.

        The first retry is early: a newly elected leader may need a few milliseconds to learn of it.
        """
        backoff_ms = min(BACKOFF_MS_MIN << min(self._failures, 10), self._backoff_ms_max)
        self._failures += 1
        self.retry_at = Monotonic(now + backoff_ms)

    def truncation(self, epoch: int, end_offset: Offset) -> Offset:
        """Truncation offset, if the leader's log of `epoch`, the last common one, ends at
        `end_offset`.
        """
        own_end = self._log.end_offset
        if end_offset == UNDEFINED or epoch == UNDEFINED:
            return min(self.high_watermark, own_end)
        own_epoch, own_epoch_end = self._log.epoch_end_offset(epoch)
        if own_epoch == UNDEFINED:
            return min(end_offset, own_end)
        if own_epoch != epoch:
            # We never had that epoch: truncate to the end of our next older one, and fetch again.
            return min(own_epoch_end, own_end)
        return min(own_epoch_end, end_offset, own_end)

    def leader_offsets(self, start: Offset, end: Offset, now: Monotonic) -> Action:
        """Log start and end offset of the leader, after OFFSET_OUT_OF_RANGE.

        If our end is in range after all, it is fetched again after a backoff.
        """
        self.state = State.FETCHING
        if end < self._log.end_offset:
            # After an unclean election: records beyond the leader's end are lost.
            return Truncate(end)
        if start > self._log.end_offset:
            return StartAt(start)
        self.failed(now)
        return None

    def _refused(self, code: ErrorCode, now: Monotonic) -> Action:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self.state = State.ASKING
            return AskOffsets()
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            self.state = State.FENCED
            return None
        self.failed(now)
        return None

    def _processed(self, high_watermark: Offset) -> None:
        """A response was fully processed; those with records or a truncation complete later."""
        self._failures = 0
        self.high_watermark = max(self.high_watermark, min(high_watermark, self._log.end_offset))
