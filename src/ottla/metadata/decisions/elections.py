"""Choice of a partition's next leader, and the resulting record.

With eligible leader replicas (KIP-966) on, a replica that left an ISR below the minimum may still
lead, because it holds all committed records; if none is left, the last known leader may, which
counts as an unclean election. A reassignment completes as soon as its new replicas are in sync.

Every removal from an ISR or ELR is built by `change_of`. It refuses to leave an ISR only to brokers
that have not contacted a new controller: they may have lost power, and report that only when they
register.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.metadata.image.cluster import (
    LEADER_UNCHANGED,
    NO_LEADER,
    RECOVERING,
    RECOVERY_UNCHANGED,
    UNASSIGNED_DIRECTORY,
    Partition,
)
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId, Uuid
from ottla.protocol.metadata_records import PartitionChangeRecord


class NotContactedYet(Refusal):
    """A removal that would leave an ISR only to brokers that have not contacted this controller.

    The caller retries: each of them sends a heartbeat, registers, or is fenced after its session.
    """

    def __init__(self) -> None:
        super().__init__(
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            "No other in-sync replica has contacted this controller yet.",
        )


@dataclass(frozen=True, slots=True)
class ElectionContext:
    """Inputs of an election beside the partition itself."""

    may_lead: Callable[[NodeId], bool]
    isr_min: int  # Effective minimum: at most the number of replicas.
    is_elr_enabled: bool
    is_unclean_allowed: bool = False
    shut_down_uncleanly: NodeId = NO_LEADER  # It may have lost acknowledged records.
    has_contacted: Callable[[NodeId], bool] = lambda _: True  # See `DecisionContext`.
    is_preferred_wanted: bool = False  # Elect the first replica of the assignment if possible.
    is_epoch_raised_by_shrinking: bool = False  # Clusters before 3.6 rely on it (KAFKA-15021).
    has_directories: bool = True
    directory_of_new: Callable[[NodeId], Uuid] = lambda _: UNASSIGNED_DIRECTORY


class Target(NamedTuple):
    """The desired state of a partition, before an election."""

    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]
    leader_recovery_state: int

    @classmethod
    def of(cls, partition: Partition) -> "Target":
        return cls(
            partition.isr,
            partition.replicas,
            partition.adding,
            partition.removing,
            partition.leader_recovery_state,
        )

    def completed(self) -> "Target":
        """The state after the reassignment if its target replicas are in sync; else itself."""
        if not self.adding and not self.removing:
            return self
        isr = tuple(node for node in self.isr if node not in self.removing)
        replicas = tuple(node for node in self.replicas if node not in self.removing)
        if not replicas or not isr or not set(replicas).issubset(isr):
            return self
        return self._replace(isr=isr, replicas=replicas, adding=(), removing=())


def change_of(
    topic_id: Uuid,
    index: int,
    partition: Partition,
    target: Target,
    election: ElectionContext,
) -> PartitionChangeRecord | None:
    """The change of `partition` to `target`, with a suitable leader; None if nothing changes.

    Raises NotContactedYet, except if only a leader is requested: then a reassignment stays open.
    """
    completed = target.completed()
    if _is_left_to_uncontacted(partition, completed.isr, election):
        if target != Target.of(partition):
            raise NotContactedYet
        completed = target
    change = _Change(partition, completed, election)
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    change.elect(record)
    change.raise_epoch_for_replicas(record)
    change.note_elr(record)
    if (
        record.isr is None
        and change.isr != partition.isr
        and (change.isr or election.is_elr_enabled)
    ):
        record.isr = list(change.isr)
    change.raise_epoch_for_isr(record)
    change.note_last_known_leader(record)
    change.note_assignment(record)
    if target.leader_recovery_state != partition.leader_recovery_state:
        record.leader_recovery_state = target.leader_recovery_state
    return None if is_empty(record) else record


def _is_left_to_uncontacted(
    partition: Partition, isr: tuple[NodeId, ...], election: ElectionContext
) -> bool:
    """True if an intact replica leaves an ISR of which no remaining member has contacted us."""
    return (
        _is_left(partition, isr, election)
        and bool(isr)
        and not any(map(election.has_contacted, isr))
    )


def _is_left(partition: Partition, isr: tuple[NodeId, ...], election: ElectionContext) -> bool:
    """True if an intact replica leaves the ISR."""
    return bool({*partition.isr}.difference(isr, (election.shut_down_uncleanly,)))


def is_empty(record: PartitionChangeRecord) -> bool:
    return (
        record.leader == LEADER_UNCHANGED
        and record.leader_recovery_state == RECOVERY_UNCHANGED
        and all(
            field is None
            for field in (
                record.isr,
                record.replicas,
                record.removing_replicas,
                record.adding_replicas,
                record.directories,
                record.eligible_leader_replicas,
                record.last_known_elr,
            )
        )
    )


class _Change:
    def __init__(self, partition: Partition, target: Target, election: ElectionContext) -> None:
        self.partition = partition
        self.target = target
        self.isr = target.isr
        self.context = election
        self.elr = self._next_elr()

    def _next_elr(self) -> tuple[NodeId, ...]:
        if self.context.is_elr_enabled:
            return self._elr_of(self.isr)
        # Left from when the feature was on. The last one stays, like the last member of an ISR.
        left = tuple(node for node in self.partition.elr if node in self.target.replicas)
        whole = tuple(node for node in left if node != self.context.shut_down_uncleanly)
        return whole or left

    def _elr_of(self, isr: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
        """Replicas that left an ISR below the minimum, except one that may have lost records.

        An ISR that satisfies the minimum commits without them, and they no longer hold everything.
        """
        if len(isr) >= self.context.isr_min:
            return ()
        candidates = sorted({*self.partition.elr, *self.partition.isr})
        lost = self.context.shut_down_uncleanly
        return tuple(
            node
            for node in candidates
            if node not in isr and node != lost and node in self.target.replicas
        )

    def elect(self, record: PartitionChangeRecord) -> None:
        leader, is_unclean = self._leader()
        if leader == self.partition.leader:
            return
        record.leader = leader
        if leader in self.elr:
            is_left = _is_left(self.partition, self.isr, self.context)
            if is_left and not self.context.has_contacted(leader):
                raise NotContactedYet
            self.isr = (leader,)
            self.elr = self._elr_of(self.isr)
        if is_unclean:
            record.isr = [leader]
            if self.partition.leader_recovery_state != RECOVERING:
                record.leader_recovery_state = RECOVERING

    def _leader(self) -> tuple[NodeId, bool]:
        replicas = self.target.replicas
        # Others may be down, though their sessions last.
        contacted_first = sorted(replicas, key=lambda node: not self.context.has_contacted(node))
        candidates = (self.partition.leader, *contacted_first)
        if self.context.is_preferred_wanted:
            candidates = (replicas[0], *candidates)
        for node in candidates:
            if self._is_eligible(node):
                return node, False
        last_known = self.partition.last_known_elr
        if (
            self.context.is_elr_enabled
            and not self.isr
            and not self.elr
            and len(last_known) == 1
            and self.context.may_lead(last_known[0])
        ):
            return last_known[0], True
        if self.context.is_unclean_allowed:
            for node in replicas:
                if self.context.may_lead(node):
                    return node, True
        return NO_LEADER, False

    def _is_eligible(self, node: NodeId) -> bool:
        is_complete = node in self.isr or (not self.isr and node in self.elr)
        return is_complete and self.context.may_lead(node)

    def raise_epoch_for_replicas(self, record: PartitionChangeRecord) -> None:
        """A removed replica must not go on fetching in the same leader epoch."""
        if record.leader == LEADER_UNCHANGED and not set(self.partition.replicas).issubset(
            self.target.replicas
        ):
            record.leader = self.partition.leader

    def raise_epoch_for_isr(self, record: PartitionChangeRecord) -> None:
        if (
            self.context.is_epoch_raised_by_shrinking
            and record.leader == LEADER_UNCHANGED
            and record.isr is not None
            and not set(self.partition.isr).issubset(record.isr)
        ):
            record.leader = self.partition.leader

    def note_elr(self, record: PartitionChangeRecord) -> None:
        """Without the feature leaders commit without regard to the ELR, so clear it.

        While the ISR is empty nothing is committed: then the ELR still holds everything and stays.
        """
        is_clean = record.isr is None
        is_valid = self.context.is_elr_enabled or not self.isr
        elr = self.elr if is_clean and is_valid else ()
        if elr != self.partition.elr:
            record.eligible_leader_replicas = list(elr)

    def note_last_known_leader(self, record: PartitionChangeRecord) -> None:
        """Store the last leader while there is none; clear it after an election.

        Without a leader, because the last in-sync replica was stopping, that replica is stored.
        """
        if not self.context.is_elr_enabled:
            return
        before = self.partition
        is_led = before.leader != NO_LEADER or not before.isr
        last = before.leader if is_led else before.isr[0]
        if record.isr == [] and before.last_known_elr != (last,):
            record.last_known_elr = [last]
        elif before.last_known_elr and (
            record.leader >= 0 or (before.leader != NO_LEADER and record.leader != NO_LEADER)
        ):
            record.last_known_elr = []

    def note_assignment(self, record: PartitionChangeRecord) -> None:
        before, target = self.partition, self.target
        if target.replicas != before.replicas:
            record.replicas = list(target.replicas)
            if self.context.has_directories:
                record.directories = self._directories()
        if target.removing != before.removing:
            record.removing_replicas = list(target.removing)
        if target.adding != before.adding:
            record.adding_replicas = list(target.adding)

    def _directories(self) -> list[Uuid] | None:
        """Existing replicas keep their directory; that of a new one may be unknown."""
        before = self.partition
        directories = [
            before.directory_of(node)
            if node in before.replicas
            else self.context.directory_of_new(node)
            for node in self.target.replicas
        ]
        return None if tuple(directories) == before.directories else directories
