"""A partition leader's view of its replicas: ISR membership and high watermark.

Pure: events arrive as method calls, time as `now`; actions for the broker are returned as effects.
After every call: the high watermark has not moved back, and every member of the ISR, and of a
proposed ISR that the controller may already have accepted, holds all records below it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Monotonic, NodeId, Offset
from ottla.replication.replica import ANY_BROKER_EPOCH, LONG_AGO, UNKNOWN_END, Replica

# The controller may have decided otherwise; the metadata log will say so. Do not ask again.
_SETTLED_BY_METADATA: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
_NOT_NOW: Final = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})


class Assignment(NamedTuple):
    """The partition's state in the controller's metadata."""

    leader_epoch: int
    partition_epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    is_recovering: bool = False  # After an unclean election, until the leader reports recovery.


@dataclass(frozen=True, slots=True)
class Committed:
    high_watermark: Offset  # Answer waiting produces and fetches below it.


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Send AlterPartition; the response is passed to `isr_decided` or `isr_refused`."""

    isr: tuple[tuple[NodeId, int], ...]  # With the broker epoch of each (KIP-903).
    leader_epoch: int
    partition_epoch: int


Effect = Committed | ProposeIsr


class Leader:
    __slots__ = (
        "_is_eligible",
        "_lag_ms_max",
        "_log_end",
        "_node",
        "_own_end",
        "_pending",
        "_replicas",
        "assignment",
        "epoch_start",
        "high_watermark",
        "isr_min",
    )

    def __init__(
        self,
        node: NodeId,
        assignment: Assignment,
        *,
        isr_min: int,
        lag_ms_max: Millis,
        log_end: Offset,
        own_end: Offset | None = None,
        high_watermark: Offset,
        is_eligible: Callable[[NodeId, int], bool],
        now: Monotonic,
    ) -> None:
        """`is_eligible(node, broker_epoch)`: alive, not shutting down, and of that incarnation.

        Our own log counts only up to `own_end` (synced), if that is less than `log_end`.
        """
        assert high_watermark <= log_end, "nothing is committed that is not there"
        self.assignment = assignment
        self.high_watermark = high_watermark
        self.epoch_start = log_end
        self.isr_min = isr_min
        self._node = node
        self._lag_ms_max = lag_ms_max
        self._log_end = log_end
        self._own_end = log_end if own_end is None else own_end
        self._is_eligible = is_eligible
        self._pending: ProposeIsr | None = None
        self._replicas: dict[NodeId, Replica] = {}
        self._track(now)

    @property
    def isr(self) -> tuple[NodeId, ...]:
        return self.assignment.isr

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.assignment.isr) < min(self.isr_min, len(self.assignment.replicas))

    @property
    def is_high_watermark_known(self) -> bool:
        """Whether the high watermark has reached the start of this leader epoch (KIP-207)."""
        return self.high_watermark >= self.epoch_start

    @property
    def pending(self) -> ProposeIsr | None:
        return self._pending

    @property
    def lag_max(self) -> Offset:
        """Lag in records of the slowest in-sync follower."""
        ends = [self.end_of(node) for node in self.isr if node in self._replicas]
        return self._log_end - min(ends, default=self._log_end)

    def end_of(self, node: NodeId) -> Offset:
        return self._log_end if node == self._node else self._replicas[node].end

    def start_of(self, node: NodeId) -> Offset:
        """Log start offset of `node` in its last fetch; -1 if it has not fetched."""
        return self._replicas[node].start

    @property
    def followers(self) -> list[NodeId]:
        return list(self._replicas)

    def check_enough_replicas(self) -> None:
        """Raise NOT_ENOUGH_REPLICAS if an acks=all produce may not be appended."""
        if self.is_under_min_isr:
            raise Refusal(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {len(self.isr)} is insufficient to satisfy the "
                f"min.isr requirement of {min(self.isr_min, len(self.assignment.replicas))}.",
            )

    def appended(
        self, log_end: Offset, now: Monotonic, *, own_end: Offset | None = None
    ) -> list[Effect]:
        """Our log has grown; it counts up to `own_end`, if that is less."""
        assert log_end >= self._log_end, "a leader's log only grows"
        for replica in self._replicas.values():
            if replica.end == self._log_end:
                # It was caught up until this append, whenever its last fetch was.
                replica.caught_up_at = now
        self._log_end = log_end
        self._own_end = log_end if own_end is None else max(own_end, self._own_end)
        return self._advance(now)

    def fetched(
        self,
        node: NodeId,
        offset: Offset,
        broker_epoch: int,
        now: Monotonic,
        *,
        log_start: Offset = UNKNOWN_END,
    ) -> list[Effect]:
        """`node` fetches at `offset`, so it holds all records below it, from `log_start` on."""
        replica = self._replicas.get(node)
        if replica is None:
            # Our image may be older than the follower's; it retries.
            raise Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{node} is no replica of this partition")
        replica.fetched(offset, our_end=self._log_end, broker_epoch=broker_epoch, now=now)
        replica.start = log_start
        return self._expand() + self._advance(now)

    def reconsider(self, now: Monotonic) -> list[Effect]:
        """The set of live brokers changed: propose replicas that can join now."""
        return self._expand() + self._advance(now)

    def tick(self, now: Monotonic) -> list[Effect]:
        """Remove followers that have lagged longer than `replica.lag.time.max.ms` from the ISR."""
        effects: list[Effect] = []
        if self._pending is None:
            slow = [
                node
                for node in self.isr
                if node != self._node and self._is_out_of_sync(self._replicas[node], now)
            ]
            for node in slow:
                self._replicas[node].is_fetching = False
            if slow:
                effects += self._propose([node for node in self.isr if node not in slow])
            else:
                effects += self._expand()
        # A replica about to join may lag now: it no longer holds the high watermark back.
        return effects + self._advance(now)

    def assigned(self, assignment: Assignment, log_end: Offset, now: Monotonic) -> list[Effect]:
        """The metadata log has a new state of this partition; we still lead it."""
        if assignment.partition_epoch <= self.assignment.partition_epoch:
            return []
        is_new_epoch = assignment.leader_epoch > self.assignment.leader_epoch
        self._assign(assignment)
        self._pending = None
        if is_new_epoch:
            self.epoch_start = log_end
            for node, replica in self._replicas.items():
                replica.epoch_begun(log_end, now, is_in_isr=node in assignment.isr)
        self._track(now)
        return self._expand() + self._advance(now)

    def isr_decided(
        self, proposal: ProposeIsr, assignment: Assignment, now: Monotonic
    ) -> list[Effect]:
        """The controller accepted the proposal; the metadata log may already be further.

        A smaller ISR takes effect only with the metadata log, which also brings any earlier change
        of `min.insync.replicas`: a higher, unknown minimum may forbid commits.
        """
        if (
            assignment.leader_epoch != self.assignment.leader_epoch
            or assignment.partition_epoch < self.assignment.partition_epoch
            or not set(self.isr).issubset(assignment.isr)
        ):
            return []
        if proposal is self._pending:
            self._pending = None
        self._assign(assignment)
        return self._expand() + self._advance(now)

    def isr_refused(self, proposal: ProposeIsr, code: ErrorCode) -> list[Effect]:
        """Propose again unless the refusal is final; the shell delays the next attempt."""
        if proposal is not self._pending:
            return []
        if code in _NOT_NOW:
            self._pending = None
            return []
        return [] if code in _SETTLED_BY_METADATA else [proposal]

    def _assign(self, assignment: Assignment) -> None:
        """Set the assignment. A replica that leaves the ISR must fetch again before it is waited
        for.
        """
        for node in self.isr:
            if node not in assignment.isr and node in self._replicas:
                self._replicas[node].is_back = False
        self.assignment = assignment

    def _track(self, now: Monotonic) -> None:
        """Track the assigned followers; ISR members start as caught up."""
        before = self._replicas
        self._replicas = {
            node: before.get(node) or Replica(now if node in self.isr else LONG_AGO)
            for node in self.assignment.replicas
            if node != self._node
        }

    def _is_out_of_sync(self, replica: Replica, now: Monotonic) -> bool:
        return not replica.is_caught_up(self._log_end, self._lag_ms_max, now)

    def _expand(self) -> list[Effect]:
        """Propose all caught-up replicas in one change."""
        if self._pending is not None or len(self.isr) > len(self._replicas):
            return []
        joining = [
            node
            for node, replica in self._replicas.items()
            if node not in self.isr and replica.is_fetching and self._may_join(node, replica)
        ]
        return self._propose([*self.isr, *joining]) if joining else []

    def _may_join(self, node: NodeId, replica: Replica) -> bool:
        # Our high watermark may be behind the last leader's; the start of our epoch is not.
        is_complete = replica.end >= max(self.high_watermark, self.epoch_start)
        return is_complete and self._is_eligible(node, replica.broker_epoch)

    def _propose(self, nodes: list[NodeId]) -> list[Effect]:
        states = tuple((node, self._broker_epoch(node)) for node in nodes)
        epochs = (self.assignment.leader_epoch, self.assignment.partition_epoch)
        self._pending = ProposeIsr(states, *epochs)
        return [self._pending]

    def _broker_epoch(self, node: NodeId) -> int:
        """Our own broker epoch is in the request already."""
        replica = self._replicas.get(node)
        return ANY_BROKER_EPOCH if replica is None else replica.broker_epoch

    def _advance(self, now: Monotonic) -> list[Effect]:
        """Advance to the smallest end of all replicas that are, may be, or are about to be in
        sync.
        """
        if self.is_under_min_isr:
            return []  # KIP-966: below `min.insync.replicas` nothing is committed.
        high_watermark = self._high_watermark(now)
        if high_watermark <= self.high_watermark:
            return []
        self.high_watermark = high_watermark
        return [Committed(high_watermark)]

    def _high_watermark(self, now: Monotonic) -> Offset:
        lowest = self._own_end
        proposed = {node for node, _ in self._pending.isr} if self._pending is not None else ()
        for node, replica in self._replicas.items():
            if replica.end < lowest and (
                node in self.isr or node in proposed or self._is_about_to_join(node, replica, now)
            ):
                lowest = replica.end
        return lowest

    def _is_about_to_join(self, node: NodeId, replica: Replica, now: Monotonic) -> bool:
        """Holding the high watermark for such a replica lets it catch up under load."""
        return (
            replica.is_back
            and replica.is_caught_up(self._log_end, self._lag_ms_max, now)
            and self._is_eligible(node, replica.broker_epoch)
        )
