"""Leaders and followers with one bug each. The model must find every one of them."""

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic, NodeId, Offset
from ottla.replication.divergence import EpochEnds, divergence
from ottla.replication.follower import Action, Answer, Follower, Truncate
from ottla.replication.leader import Leader
from ottla.replication.replica import Replica
from tests.unit.replication.partition_model import LedLog


class CountsOnlyItself(Leader):
    """The high watermark from the leader alone."""

    __slots__ = ()

    def _high_watermark(self, now: Monotonic) -> Offset:
        return self._own_end


class LetsJoinTooEarly(Leader):
    """Every fetching replica counts as in sync."""

    __slots__ = ()

    def _may_join(self, node: NodeId, replica: Replica) -> bool:
        return self._is_eligible(node, replica.broker_epoch)


class ForgetsBrokerEpochs(Leader):
    """A fetch of an earlier incarnation counts for a later one."""

    __slots__ = ()

    def _broker_epoch(self, node: NodeId) -> int:
        return -1


class ForgetsWhatItProposed(Leader):
    """Members of a pending proposal are not counted."""

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
    """It names no last fetched epoch, so the leader never reports divergence."""

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
    """Divergence truncates everything above the high watermark (before KIP-101)."""

    __slots__ = ()

    def truncation(self, epoch: int, end_offset: Offset) -> Offset:
        return min(self.high_watermark, self._log.end_offset)

    def first_action(self) -> Action:
        return Truncate(self.truncation(-1, -1))


class BelievesLateAnswers(Follower):
    """A response to an earlier fetch is processed."""

    __slots__ = ()

    def answered(
        self, answer: Answer, *, asked_offset: Offset, asked_epoch: int, now: Monotonic
    ) -> Action:
        asked_offset, asked_epoch = self._log.end_offset, self.last_fetched_epoch
        return super().answered(answer, asked_offset=asked_offset, asked_epoch=asked_epoch, now=now)


class BelievesTheHighWatermark(Follower):
    """The leader's high watermark is copied, even beyond the log end."""

    __slots__ = ()

    def _processed(self, high_watermark: Offset) -> None:
        self.high_watermark = max(self.high_watermark, high_watermark)


class LetsJoinAtTheHighWatermark(Leader):
    """Reaching the high watermark is enough to join, without the start of the leader's epoch."""

    __slots__ = ()

    def _may_join(self, node: NodeId, replica: Replica) -> bool:
        is_complete = replica.end >= self.high_watermark
        return is_complete and self._is_eligible(node, replica.broker_epoch)
