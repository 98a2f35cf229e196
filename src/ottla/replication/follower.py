"""What a follower does with its leader's answers: append, cut back, begin elsewhere, or wait.

Where its log parts from the leader's is told with each fetch (KIP-595): the follower says which
epoch wrote its last record, and the leader answers where that epoch ended in its own log. So the
follower never cuts by guess, and never below what the leader has in common with it (KIP-101, 279).
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
    """What a follower has to know of its own log."""

    @property
    def log_start_offset(self) -> Offset: ...
    @property
    def end_offset(self) -> Offset: ...
    @property
    def last_epoch(self) -> int: ...
    def epoch_end_offset(self, epoch: int) -> tuple[int, Offset]: ...


class Answer(NamedTuple):
    """What the leader answers for one partition; the records stay with the shell."""

    error_code: int
    high_watermark: Offset
    log_start_offset: Offset
    has_records: bool
    diverging: tuple[int, Offset] | None = None  # An epoch, and where it ends in the leader's log.


@dataclass(frozen=True, slots=True)
class Append:
    """Append the records, then `Follower.appended`."""


@dataclass(frozen=True, slots=True)
class Truncate:
    offset: Offset  # Remove everything from here on, then `Follower.truncated`.


@dataclass(frozen=True, slots=True)
class AskOffsets:
    """Ask the leader where its log starts and ends; `Follower.leader_offsets` hears it."""


@dataclass(frozen=True, slots=True)
class StartAt:
    offset: Offset  # Empty the log: the leader has nothing of it any more.


Action = Append | Truncate | AskOffsets | StartAt | None


class State(Enum):
    FETCHING = "fetching"
    ASKING = "asking"  # For the leader's offsets: ours are out of its range.
    FENCED = "fenced"  # Until the metadata log tells of a newer epoch.


class Follower:
    __slots__ = (
        "_backoff_ms_max",
        "_failures",
        "_log",
        "has_heard",
        "high_watermark",
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
        self.has_heard = False  # The leader knows what we have: it has answered a fetch of it.
        self.leader_high_watermark: Offset = UNDEFINED
        self.throttle: Throttle | None = None  # It holds us up while we are not in sync.
        self.state = State.FETCHING
        self.retry_at: Monotonic | None = None
        self._log = log
        self._backoff_ms_max = backoff_ms
        self._failures = 0  # Since an answer was of use.

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
        """A log that does not know who wrote what can only trust what was committed."""
        if self._log.last_epoch == UNDEFINED and self.high_watermark < self._log.end_offset:
            return Truncate(self.high_watermark)
        return None

    @property
    def is_in_sync(self) -> bool:
        """Whether it had all that was committed when it last heard."""
        return self.has_heard and self.fetch_offset >= self.leader_high_watermark

    def may_fetch(self, now: Monotonic) -> bool:
        if self.throttle is not None and not self.is_in_sync:
            self.retry_at = self.throttle.free_at(now) or self.retry_at
        return self.state is State.FETCHING and (self.retry_at is None or now >= self.retry_at)

    def answered(
        self, answer: Answer, *, asked_offset: Offset, asked_epoch: int, now: Monotonic
    ) -> Action:
        """The leader's answer to a fetch of `asked_offset`, after records of `asked_epoch`."""
        self.retry_at = None
        is_ours = asked_offset == self._log.end_offset and asked_epoch == self.last_fetched_epoch
        if self.state is not State.FETCHING or not is_ours:
            return None  # It answers what we do not ask any more: it must not cut what came since.
        if answer.error_code:
            return self._refused(ErrorCode(answer.error_code), now)
        if answer.diverging is not None:
            return Truncate(self.truncation(*answer.diverging))
        self.has_heard = True
        self.leader_high_watermark = answer.high_watermark
        if answer.has_records:
            return Append()
        self._heard(answer.high_watermark)
        return None

    def appended(self, high_watermark: Offset) -> None:
        """The records are in our log; so much of it is committed as far as we have it."""
        self._heard(high_watermark)

    def truncated(self) -> None:
        """The high watermark is within what we have; the leader tells the true one.

        Where we began anew it is where we begin: only what is committed is deleted.
        """
        committed = max(self.high_watermark, self._log.log_start_offset)
        self.high_watermark = min(committed, self._log.end_offset)

    def failed(self, now: Monotonic) -> None:
        """Nothing came, or nothing of use: leave it for a moment, and for a longer one each time.

        A leader that has not heard yet that it leads will have in a few milliseconds.
        """
        backoff_ms = min(BACKOFF_MS_MIN << min(self._failures, 10), self._backoff_ms_max)
        self._failures += 1
        self.retry_at = Monotonic(now + backoff_ms)

    def truncation(self, epoch: int, end_offset: Offset) -> Offset:
        """Where to cut, if the leader's log of `epoch`, the last both may share, ends so."""
        own_end = self._log.end_offset
        if end_offset == UNDEFINED or epoch == UNDEFINED:
            return min(self.high_watermark, own_end)
        own_epoch, own_epoch_end = self._log.epoch_end_offset(epoch)
        if own_epoch == UNDEFINED:
            return min(end_offset, own_end)
        if own_epoch != epoch:
            # We never saw that epoch: cut to where our next older one ends, and ask again.
            return min(own_epoch_end, own_end)
        return min(own_epoch_end, end_offset, own_end)

    def leader_offsets(self, start: Offset, end: Offset, now: Monotonic) -> Action:
        """Offsets of the leader's log, after it answered OFFSET_OUT_OF_RANGE.

        If our end is within them after all, it is asked for again after a backoff.
        """
        self.state = State.FETCHING
        if end < self._log.end_offset:
            return Truncate(end)  # After an unclean election: what we have more is lost.
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

    def _heard(self, high_watermark: Offset) -> None:
        """All of an answer is done. One that says to cut, or brings records, is not by itself."""
        self._failures = 0
        self.high_watermark = max(self.high_watermark, min(high_watermark, self._log.end_offset))
