"""Leaders and followers with one mistake each. The model has to catch every one of them."""

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic, NodeId, Offset
from ottla.replication.divergence import EpochEnds, divergence
from ottla.replication.follower import Action, Answer, Follower, Truncate
from ottla.replication.leader import Leader
from ottla.replication.replica import Replica
from tests.unit.replication.modelling import LedLog


class CountsOnlyItself(Leader):
    """The high watermark from the leader alone."""

    __slots__ = ()

    def _high_watermark(self, now: Monotonic) -> Offset:
        return self._own_end


class LetsJoinTooEarly(Leader):
    """Whoever fetches is in sync."""

    __slots__ = ()

    def _may_join(self, node: NodeId, replica: Replica) -> bool:
        return self._is_eligible(node, replica.broker_epoch)


class ForgetsBrokerEpochs(Leader):
    """An earlier process of a broker vouches for a later one."""

    __slots__ = ()

    def _broker_epoch(self, node: NodeId) -> int:
        return -1


class ForgetsWhatItProposed(Leader):
    """A replica that the controller may have let in already does not count yet."""

    __slots__ = ()

    def _high_watermark(self, now: Monotonic) -> Offset:
        ends = [self.end_of(node) for node in self.isr]
        return min([self._own_end, *ends])


class CommitsWhatTooFewHold(Leader):
    """The high watermark advances below the minimum of in-sync replicas."""

    __slots__ = ()

    @property
    def is_under_min_isr(self) -> bool:
        return False


class ForgetsToTruncate(Follower):
    """It does not say which epoch wrote its last record, so nobody tells it where it parts."""

    __slots__ = ()

    @property
    def last_fetched_epoch(self) -> int:
        return -1


def parts_by_end_offset(
    leader: EpochEnds, *, fetch_offset: Offset, last_fetched_epoch: int
) -> tuple[int, Offset] | None:
    """A log diverges if it is longer than the leader's; its epochs are not compared (KIP-279)."""
    assert isinstance(leader, LedLog)
    if fetch_offset <= leader.log.end_offset:
        return None
    return divergence(leader, fetch_offset=fetch_offset, last_fetched_epoch=last_fetched_epoch)


def parts_by_epoch(
    leader: EpochEnds, *, fetch_offset: Offset, last_fetched_epoch: int
) -> tuple[int, Offset] | None:
    """The epoch is compared, but not how much of it the leader has."""
    epoch, end_offset = leader.epoch_end_offset(last_fetched_epoch)
    if epoch < 0:
        raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
    return (epoch, end_offset) if epoch < last_fetched_epoch else None


class TruncatesToTheHighWatermark(Follower):
    """Where logs part, everything that is not known as committed goes (before KIP-101)."""

    __slots__ = ()

    def truncation(self, epoch: int, end_offset: Offset) -> Offset:
        return min(self.high_watermark, self._log.end_offset)

    def first_action(self) -> Action:
        return Truncate(self.truncation(-1, -1))


class BelievesLateAnswers(Follower):
    """An answer to an earlier fetch counts like one to the last."""

    __slots__ = ()

    def answered(
        self, answer: Answer, *, asked_offset: Offset, asked_epoch: int, now: Monotonic
    ) -> Action:
        asked_offset, asked_epoch = self._log.end_offset, self.last_fetched_epoch
        return super().answered(answer, asked_offset=asked_offset, asked_epoch=asked_epoch, now=now)


class BelievesTheHighWatermark(Follower):
    """The leader's high watermark is taken over, however short the log is."""

    __slots__ = ()

    def _heard(self, high_watermark: Offset) -> None:
        self.high_watermark = max(self.high_watermark, high_watermark)


class LetsJoinAtTheHighWatermark(Leader):
    """To have what this leader knows as committed is enough, wherever its epoch began."""

    __slots__ = ()

    def _may_join(self, node: NodeId, replica: Replica) -> bool:
        is_complete = replica.end >= self.high_watermark
        return is_complete and self._is_eligible(node, replica.broker_epoch)
