"""What a partition's leader knows: who is in sync, and how far the log is committed.

Pure: events arrive as method calls, time as `now`; what the broker must do returns as effects.
After every call the high watermark has not gone back, and everyone who is in the ISR, or whom the
controller may have let into it without our knowing yet, holds all that is below it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Monotonic, NodeId, Offset
from ottla.replication.replica import ANY_BROKER_EPOCH, LONG_AGO, UNKNOWN_END, Replica

# The controller may have decided otherwise by now, and its log will tell us: do not ask again.
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
    """A partition as the controller has it."""

    leader_epoch: int
    partition_epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    is_recovering: bool = False  # After an unclean election, until the leader says otherwise.


@dataclass(frozen=True, slots=True)
class Committed:
    high_watermark: Offset  # Answer the produces and fetches that wait below it.


@dataclass(frozen=True, slots=True)
class ProposeIsr:
    """Ask the controller; its answer returns as `isr_decided` or `isr_refused`."""

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
        """`is_eligible(node, broker_epoch)`: alive, not stopping, and of that incarnation.

        What counts as held by us ends at `own_end`, if that is less than `log_end`.
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
        """Whether it has passed what earlier leaders may have committed (KIP-207)."""
        return self.high_watermark >= self.epoch_start

    @property
    def pending(self) -> ProposeIsr | None:
        return self._pending

    @property
    def lag_max(self) -> Offset:
        """How far the slowest in-sync follower is behind."""
        ends = [self.end_of(node) for node in self.isr if node in self._replicas]
        return self._log_end - min(ends, default=self._log_end)

    def end_of(self, node: NodeId) -> Offset:
        return self._log_end if node == self._node else self._replicas[node].end

    def start_of(self, node: NodeId) -> Offset:
        """Where its log began when it last asked; -1 if it never did."""
        return self._replicas[node].start

    @property
    def followers(self) -> list[NodeId]:
        return list(self._replicas)

    def check_enough_replicas(self) -> None:
        """Whether an acks=all produce may be appended at all."""
        if self.is_under_min_isr:
            raise Refusal(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {len(self.isr)} is insufficient to satisfy the "
                f"min.isr requirement of {min(self.isr_min, len(self.assignment.replicas))}.",
            )

    def appended(
        self, log_end: Offset, now: Monotonic, *, own_end: Offset | None = None
    ) -> list[Effect]:
        """Our log grew; what counts as held by us ends at `own_end`, if that is less."""
        assert log_end >= self._log_end, "a leader's log only grows"
        for replica in self._replicas.values():
            if replica.end == self._log_end:
                replica.caught_up_at = now  # Until now, however long it is since it last asked.
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
        """`node` asks for `offset`, so it holds everything below it, from `log_start` on."""
        replica = self._replicas.get(node)
        if replica is None:
            # Our image may be behind its: it comes again when we know it, too.
            raise Refusal(ErrorCode.UNKNOWN_LEADER_EPOCH, f"{node} is no replica of this partition")
        replica.fetched(offset, our_end=self._log_end, broker_epoch=broker_epoch, now=now)
        replica.start = log_start
        return self._expand() + self._advance(now)

    def reconsider(self, now: Monotonic) -> list[Effect]:
        """Brokers came or went: whoever could not join before may be able to now."""
        return self._expand() + self._advance(now)

    def tick(self, now: Monotonic) -> list[Effect]:
        """Whoever has not been where we were for too long leaves the ISR."""
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
        # Whom we waited for to join may be slow now: we wait no longer.
        return effects + self._advance(now)

    def assigned(self, assignment: Assignment, log_end: Offset, now: Monotonic) -> list[Effect]:
        """The metadata log tells of this partition, which we still lead."""
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
        """The controller's answer; its log may have told us before, or more.

        A smaller ISR counts once the log tells it, and with it every `min.insync.replicas` that
        was set before: under a minimum that we do not know yet it may have to commit nothing.
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
        """Ask again what was not decided at all; the shell waits a little before it does."""
        if proposal is not self._pending:
            return []
        if code in _NOT_NOW:
            self._pending = None
            return []
        return [] if code in _SETTLED_BY_METADATA else [proposal]

    def _assign(self, assignment: Assignment) -> None:
        """Whoever leaves the ISR is waited for again only once it has fetched again."""
        for node in self.isr:
            if node not in assignment.isr and node in self._replicas:
                self._replicas[node].is_back = False
        self.assignment = assignment

    def _track(self, now: Monotonic) -> None:
        """Followers as they are assigned; those of the ISR count as caught up at first."""
        before = self._replicas
        self._replicas = {
            node: before.get(node) or Replica(now if node in self.isr else LONG_AGO)
            for node in self.assignment.replicas
            if node != self._node
        }

    def _is_out_of_sync(self, replica: Replica, now: Monotonic) -> bool:
        return not replica.is_caught_up(self._log_end, self._lag_ms_max, now)

    def _expand(self) -> list[Effect]:
        """Propose all who have caught up; one that did while we asked for another is among them."""
        if self._pending is not None or len(self.isr) > len(self._replicas):
            return []
        joining = [
            node
            for node, replica in self._replicas.items()
            if node not in self.isr and replica.is_fetching and self._may_join(node, replica)
        ]
        return self._propose([*self.isr, *joining]) if joining else []

    def _may_join(self, node: NodeId, replica: Replica) -> bool:
        # Our watermark may trail what the last leader committed; our epoch's start does not.
        is_complete = replica.end >= max(self.high_watermark, self.epoch_start)
        return is_complete and self._is_eligible(node, replica.broker_epoch)

    def _propose(self, nodes: list[NodeId]) -> list[Effect]:
        states = tuple((node, self._broker_epoch(node)) for node in nodes)
        epochs = (self.assignment.leader_epoch, self.assignment.partition_epoch)
        self._pending = ProposeIsr(states, *epochs)
        return [self._pending]

    def _broker_epoch(self, node: NodeId) -> int:
        """Our own is in the request anyway."""
        replica = self._replicas.get(node)
        return ANY_BROKER_EPOCH if replica is None else replica.broker_epoch

    def _advance(self, now: Monotonic) -> list[Effect]:
        """What everyone holds who is in sync, or perhaps is already, or is about to be."""
        if self.is_under_min_isr:
            return []  # KIP-966: what so few hold is not committed.
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
        """Waiting for it keeps the watermark from running away from it again and again."""
        return (
            replica.is_back
            and replica.is_caught_up(self._log_end, self._lag_ms_max, now)
            and self._is_eligible(node, replica.broker_epoch)
        )
