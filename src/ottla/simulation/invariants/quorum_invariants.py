"""What must hold among the controllers after every turn of the loop, whatever has happened.

R1  An epoch has at most one leader.
R2  A node votes once in an epoch, and remembers it whatever becomes of it.
R3  A leader only adds to its log, and R4 logs that have the same batch are alike up to it.
R5  A new leader has all that was committed, and R6 what is committed is the same for all.
R7  A high watermark does not go back, a majority holds what is below it, and nobody cuts that.
R8  A node's epoch does not go back.
R9  A log that does not begin at 0 begins where a snapshot ends, of what is committed.
R11 A leader changes the voters only after a record of its own epoch is committed.
"""

from dataclasses import dataclass, field

from ottla.broker.node import inspection
from ottla.broker.node.inspection import QuorumView
from ottla.model.types import NodeId, Offset
from ottla.quorum.election_state import ElectionState
from ottla.quorum.voters import Voters
from ottla.simulation.history.history import Violation
from ottla.simulation.invariants.chains import NOTHING, Chain
from ottla.simulation.world.nodes import Nodes

NOBODY = -1


@dataclass(slots=True)
class Seen:
    """A node as it was after the last turn."""

    start: int = 0
    mark: tuple[object, ...] = ()
    high_watermark: Offset = 0
    led: Offset = -1  # Where its log ended as that of a leader,
    led_epoch: int = -1  # in this epoch,
    voters: frozenset[NodeId] = frozenset()  # with these voters.
    epoch: int = 0
    # What it had written down and told others.
    settled_epoch: int = 0
    settled_vote: int = NOBODY
    chain: Chain = field(default_factory=Chain)


class QuorumInvariants:
    def __init__(self, nodes: Nodes) -> None:
        self.leaders: dict[int, NodeId] = {}
        self.committed: dict[Offset, int] = {}  # By a batch's last offset, its mark.
        self.committed_end: Offset = 0
        self._nodes = nodes
        self._seen = {number: Seen() for number in nodes.voters}
        self._marks: dict[tuple[Offset, int], int] = {}

    def check(self) -> None:
        for number, seen in self._seen.items():
            machine = self._nodes.machines[number]
            view = inspection.quorum(machine.latest)
            if view is None:
                continue
            is_settled = view.is_settled
            mark = (
                view.role,
                view.state,
                view.high_watermark,
                view.end_offset,
                is_settled,
                machine.starts,
            )
            if len(seen.mark) == len(mark) and all(map(_is_same, mark, seen.mark)):
                continue
            seen.mark = mark
            machine.disk.is_observed = True
            self._look(number, seen, view, machine.starts, is_settled=is_settled)
            machine.disk.is_observed = False

    def _look(
        self, number: NodeId, seen: Seen, view: QuorumView, start: int, *, is_settled: bool
    ) -> None:
        if start != seen.start:
            seen.start, seen.high_watermark, seen.epoch = start, 0, 0
            seen.led = seen.led_epoch = -1
        self._check_epoch(number, seen, view.state, is_settled=is_settled)
        self._check_log(number, seen, view)
        if (led_epoch := view.led_epoch) is not None:
            self._check_leader(number, seen, view, led_epoch)
        high_watermark = view.high_watermark or 0
        if high_watermark < seen.high_watermark:
            raise Violation(f"R7: node {number}'s high watermark goes back to {high_watermark}")
        if high_watermark > seen.high_watermark:
            seen.high_watermark = high_watermark
            self._check_committed(number, seen, high_watermark, view.voters)

    def _check_epoch(
        self, number: NodeId, seen: Seen, state: ElectionState, *, is_settled: bool
    ) -> None:
        if state.epoch < max(seen.epoch, seen.settled_epoch):
            known = max(seen.epoch, seen.settled_epoch)
            raise Violation(f"R8: node {number} goes back from epoch {known} to {state.epoch}")
        seen.epoch = state.epoch
        if state.epoch > seen.settled_epoch and is_settled:
            seen.settled_epoch, seen.settled_vote = state.epoch, NOBODY
        if state.epoch == seen.settled_epoch:
            is_forgotten = state.voted == NOBODY and state.leader == NOBODY
            is_other = state.voted not in (NOBODY, seen.settled_vote)
            if seen.settled_vote != NOBODY and (is_other or is_forgotten):
                raise Violation(
                    f"R2: in epoch {state.epoch} node {number} voted for {seen.settled_vote}, "
                    f"and then for {state.voted}"
                )
            if is_settled and state.voted != NOBODY:
                seen.settled_vote = state.voted

    def _check_log(self, number: NodeId, seen: Seen, view: QuorumView) -> None:
        start = view.log_start_offset
        if start > 0:
            ends = view.snapshot_ends
            if start not in ends:
                raise Violation(
                    f"R9: node {number}'s log begins at {start}, its snapshots end at {ends}"
                )
            if ends[-1] > self.committed_end:
                raise Violation(f"R9: node {number} has a snapshot of what is not committed")
        if start > seen.chain.start:
            seen.chain = Chain(start, self.committed.get(start - 1, NOTHING))
        for link in seen.chain.follow(view.end_offset, view.batches):
            place = (link.last_offset, link.leader_epoch)
            if self._marks.setdefault(place, link.mark) != link.mark:
                raise Violation(
                    f"R4: node {number} has offset {place[0]} of epoch {place[1]} as others have "
                    "it, but not what lies before it"
                )

    def _check_leader(self, number: NodeId, seen: Seen, view: QuorumView, epoch: int) -> None:
        leader = self.leaders.setdefault(epoch, number)
        if leader != number:
            raise Violation(f"R1: nodes {leader} and {number} both lead epoch {epoch}")
        end = view.end_offset
        if epoch == seen.led_epoch and end < seen.led:
            raise Violation(f"R3: node {number} cuts the log that it leads to {end}")
        if epoch != seen.led_epoch:
            last = self.committed_end - 1
            if last >= seen.chain.start and seen.chain.mark_at(last) != self.committed.get(last):
                raise Violation(
                    f"R5: node {number} leads epoch {epoch} without what was committed up to "
                    f"{self.committed_end}"
                )
        voters, start = frozenset(view.voters.by_id), view.epoch_start_offset
        is_changed = epoch == seen.led_epoch and voters != seen.voters
        if is_changed and (start is None or (view.high_watermark or 0) <= start):
            raise Violation(
                f"R11: node {number} changes the voters in epoch {epoch}, of which nothing is "
                "committed"
            )
        seen.led, seen.led_epoch, seen.voters = end, epoch, voters

    def _check_committed(
        self, number: NodeId, seen: Seen, high_watermark: Offset, voters: Voters
    ) -> None:
        for link in reversed(seen.chain.links):
            if link.last_offset >= high_watermark:
                continue
            if self.committed.setdefault(link.last_offset, link.mark) != link.mark:
                raise Violation(
                    f"R6: node {number} takes another record for committed at {link.last_offset}"
                )
            if link.last_offset < self.committed_end - 1:
                break
        if high_watermark > self.committed_end:
            self.committed_end = high_watermark
            self._check_majority(number, high_watermark, voters)

    def _check_majority(self, number: NodeId, high_watermark: Offset, voters: Voters) -> None:
        mark = self._seen[number].chain.mark_at(high_watermark - 1)
        holders = [
            node
            for node, seen in self._seen.items()
            if node in voters.by_id and seen.chain.mark_at(high_watermark - 1) == mark
        ]
        if mark is not None and len(holders) < voters.majority:
            raise Violation(f"R7: {high_watermark} is committed, and only {holders} have it")


def _is_same(one: object, other: object) -> bool:
    """Roles and states are replaced, not changed, where it matters; offsets are compared."""
    return one == other if isinstance(one, int) else one is other
