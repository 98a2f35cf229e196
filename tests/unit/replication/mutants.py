"""Leaders and followers with one mistake each. The model has to catch every one of them."""

from ottla.model.types import Monotonic, NodeId, Offset
from ottla.replication.follower import Follower
from ottla.replication.leader import Leader
from ottla.replication.replica import Replica


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
