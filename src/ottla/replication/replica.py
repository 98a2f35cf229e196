"""What a leader knows of one replica elsewhere: how far it has come, and when it had all."""

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
        self.end = UNKNOWN_END  # It holds everything below,
        self.start = UNKNOWN_END  # and nothing that is still further below.
        self.caught_up_at = caught_up_at  # When it last had all that we had.
        self.broker_epoch = ANY_BROKER_EPOCH  # Of the process that fetched last.
        self.is_fetching = False  # It has asked for something since it was last given up.
        self.is_back = False  # It has asked for something since it was last out of the ISR.
        self._fetched_at = LONG_AGO  # Its last fetch, and where our log ended then:
        self._our_end: Offset = 0  # to reach that end later proves that it had all at that time.

    def fetched(
        self, offset: Offset, *, our_end: Offset, broker_epoch: int, now: Monotonic
    ) -> None:
        """It asks for `offset`, so it holds everything below.

        A fetch that an earlier process of the same broker sent says nothing of what this one holds
        (KIP-903): it is refused.
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
        """The same leader leads in a new epoch: nobody has failed to keep up with it yet."""
        self._our_end = our_end
        self._fetched_at = self.caught_up_at = now if is_in_isr else LONG_AGO
