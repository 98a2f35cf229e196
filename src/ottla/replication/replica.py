"""A leader's view of one remote replica: its log end, and when it was last caught up."""

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Monotonic, Offset

UNKNOWN_END: Offset = -1
ANY_BROKER_EPOCH = -1
LONG_AGO = Monotonic(-(2**62))


class Replica:
    __slots__ = (
        "_fetched_at",
        "_our_end",
        "broker_epoch",
        "caught_up_at",
        "end",
        "is_back",
        "is_fetching",
        "start",
    )

    def __init__(self, caught_up_at: Monotonic = LONG_AGO) -> None:
        self.end = UNKNOWN_END  # It holds all records below `end`,
        self.start = UNKNOWN_END  # from `start` on.
        self.caught_up_at = caught_up_at  # When it last held all of our records.
        self.broker_epoch = ANY_BROKER_EPOCH  # Of the incarnation that fetched last.
        self.is_fetching = False  # It has fetched since its last removal.
        self.is_back = False  # It has fetched since it last left the ISR.
        self._fetched_at = LONG_AGO  # Its last fetch, and our log end then:
        # reaching that end later proves that it was caught up at that time.
        self._our_end: Offset = 0

    def fetched(
        self, offset: Offset, *, our_end: Offset, broker_epoch: int, now: Monotonic
    ) -> None:
        """A fetch at `offset`: the replica holds all records below.

        A fetch of an earlier incarnation of the broker proves nothing about this one (KIP-903) and
        is refused.
        """
        if ANY_BROKER_EPOCH not in (broker_epoch, self.broker_epoch) and (
            broker_epoch < self.broker_epoch
        ):
            raise Refusal(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"The fetch is of broker epoch {broker_epoch}, but {self.broker_epoch} is known.",
            )
        if offset >= our_end:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self._our_end:
            self.caught_up_at = max(self.caught_up_at, self._fetched_at)
        self.end, self.broker_epoch = offset, broker_epoch
        self.is_fetching = self.is_back = True
        self._fetched_at, self._our_end = now, our_end

    def is_caught_up(self, our_end: Offset, lag_ms_max: Millis, now: Monotonic) -> bool:
        return self.end == our_end or now - self.caught_up_at <= lag_ms_max

    def epoch_begun(self, our_end: Offset, now: Monotonic, *, is_in_isr: bool) -> None:
        """This broker leads in a new epoch: lag is counted from now."""
        self._our_end = our_end
        self._fetched_at = self.caught_up_at = now if is_in_isr else LONG_AGO
