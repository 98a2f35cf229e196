"""The promises of a quorum, checked against all that its nodes have done together.

R1 an epoch has one leader. R2 a replica votes once in an epoch, and the vote is durable before the
reply. R3 a leader only appends. R4 entries of equal offset and epoch have equal prefixes. R5 a new
leader has every committed entry. R6 an offset is committed with one entry. R7 the high watermark
does not go back, a majority of the voters has it on disk, and nothing below is truncated. R8 the
epoch of a node does not go back. R9 a log that begins later begins at a snapshot of committed
entries, and a leader installs none. R10 voters change one at a time, after the change before and
an entry of the leader's own epoch are committed.
"""

# ruff: noqa: ANN401

from typing import Any

from ottla.model.types import NodeId, Offset
from ottla.protocol.messages import vote
from ottla.quorum.election_state import NOBODY, ElectionState
from ottla.quorum.messages import partition_of
from ottla.quorum.voters import ReplicaKey, Voter, Voters
from tests.simulation.quorum_node import Entry, Node


class Violation(Exception):
    """A promise was broken."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule


class Rules:
    def __init__(self, nodes: dict[NodeId, Node]) -> None:
        self.nodes = nodes
        self.leaders: dict[int, NodeId] = {}
        self.votes: dict[tuple[ReplicaKey, int], NodeId] = {}
        self.committed: list[Entry] = []
        self.elections = 0
        self.voter_changes = 0
        self.truncations = 0
        self.snapshots_installed = 0
        self._ends: dict[int, Offset] = {}  # How far the leader of each epoch has committed.
        self._epochs: dict[ReplicaKey, int] = {}  # As others have heard them.
        self._seen: dict[tuple[Offset, int], tuple[Any, int]] = {}

    def appended(self, offset: Offset, entry: Entry, epoch_before: int) -> None:
        """By induction, equal entries after equal epochs have equal prefixes."""
        known = self._seen.setdefault((offset, entry.epoch), (entry.value, epoch_before))
        if known != (entry.value, epoch_before):
            raise Violation("R4", f"offset {offset} of epoch {entry.epoch} exists in two ways")
        if epoch_before > entry.epoch:
            raise Violation("R4", f"epoch {entry.epoch} is appended after {epoch_before}")

    def led(self, node: Node, epoch: int) -> None:
        self.elections += 1
        if self.leaders.setdefault(epoch, node.key.id) != node.key.id:
            raise Violation("R1", f"epoch {epoch} has two leaders")
        # A leader of an earlier epoch may learn late that it was elected.
        ends = [end for earlier, end in self._ends.items() if earlier < epoch]
        needed = max(ends, default=0)
        if list(node.log.part(0, needed)) != self.committed[:needed]:
            raise Violation("R5", f"the leader of epoch {epoch} lacks committed entries")
        node.led_end = node.log.end_offset

    def committed_by(self, node: Node, high_watermark: Offset) -> None:
        known = len(self.committed)
        start = min(node.agreed, known)
        news = node.log.part(start, high_watermark)
        if list(news[: known - start]) != self.committed[start:high_watermark]:
            raise Violation("R6", f"{node.key.id} commits other entries below {high_watermark}")
        # A leader that was removed resigns in the same step.
        epoch = node.quorum.state.epoch
        is_leader = self.leaders.get(epoch) == node.key.id
        if high_watermark > known:
            if not is_leader:
                raise Violation("R7", f"{node.key.id} commits {high_watermark} before any leader")
            self.committed += news[known - start :]
        node.agreed = high_watermark
        if is_leader:
            self._ends[epoch] = high_watermark
            voters = node.quorum.voters
            holders = sum(self._holds(voter, high_watermark) for voter in voters.by_id.values())
            if holders < voters.majority:
                disks = f"{holders} disks of {len(voters.by_id)}"
                raise Violation("R7", f"{high_watermark} is committed on {disks}")

    def _holds(self, voter: Voter, end: Offset) -> bool:
        node = self.nodes[voter.id]
        if voter.directory_id != node.key.directory_id:
            return True  # It had it when it said so; the disk is gone and votes no more.
        start, entries = node.log.durable
        return start >= end or (
            start + len(entries) >= end and entries[end - 1 - start] == self.committed[end - 1]
        )

    def persisted(self, node: Node, state: ElectionState) -> None:
        if state.epoch < node.durable_state.epoch:
            raise Violation("R8", "the durable epoch went back")
        if state.voted != NOBODY:
            self._voted(node.key, state.epoch, state.voted)
        elif state.leader == node.key.id:
            self._voted(node.key, state.epoch, node.key.id)

    def exposed(self, node: Node) -> None:
        """It sends something: its epoch is known to others from here on."""
        epoch = node.quorum.state.epoch
        if epoch < self._epochs.get(node.key, 0):
            raise Violation("R8", f"{node.key.id} speaks in an earlier epoch than before")
        self._epochs[node.key] = epoch

    def replied(self, node: Node, request: Any, response: Any) -> None:
        self.exposed(node)
        if not isinstance(request, vote.Request):
            return
        asked, said = partition_of(request), partition_of(response)
        if not said.vote_granted or asked.pre_vote:
            return
        self._voted(node.key, asked.replica_epoch, NodeId(asked.replica_id))
        durable = node.durable_state
        if (durable.epoch, durable.voted) != (asked.replica_epoch, asked.replica_id):
            raise Violation("R2", f"{node.key.id} grants a vote that is not on its disk")

    def _voted(self, voter: ReplicaKey, epoch: int, candidate: NodeId) -> None:
        if self.votes.setdefault((voter, epoch), candidate) != candidate:
            raise Violation("R2", f"{voter.id} votes twice in epoch {epoch}")

    def truncated(self, node: Node, offset: Offset) -> None:
        self.truncations += 1
        if node.is_leader:
            raise Violation("R3", f"{node.key.id} leads and truncates its log")
        removed = node.log.part(offset, node.log.end_offset)
        kept = self.committed[offset : offset + 1]
        if removed and list(removed[:1]) == kept:
            raise Violation("R7", f"{node.key.id} truncates {offset}, which is committed")

    def installed(self, node: Node) -> None:
        self.snapshots_installed += 1
        if node.is_leader:
            raise Violation("R9", f"{node.key.id} leads and installs a snapshot")

    def voters_changed(self, node: Node, epoch: int, voters: Voters) -> None:
        """A leader appends a voters record."""
        before = node.quorum.voters
        if voters == before:
            return  # The first leaders write down the voters that they were given.
        self.voter_changes += 1
        joined = set(voters.by_id) ^ set(before.by_id)
        replaced = [
            n
            for n in set(voters.by_id) & set(before.by_id)
            if voters.by_id[n].directory_id != before.by_id[n].directory_id
        ]
        if len(joined) + 2 * len(replaced) > 1:
            raise Violation("R10", f"{sorted(joined)} join or leave at once")
        if epoch not in self._ends:
            raise Violation("R10", f"voters change before epoch {epoch} has committed anything")
        if node.quorum.history.changed_at >= self._ends[epoch]:
            raise Violation("R10", "voters change before the last change is committed")

    def check(self, node: Node) -> None:
        """After every effect."""
        machine, log = node.machine, node.log
        if machine is None:
            return
        if machine.state.epoch < node.durable_state.epoch:
            raise Violation("R8", "the epoch went back")
        high_watermark = machine.high_watermark or 0
        if high_watermark < node.high_watermark:
            raise Violation("R7", f"the high watermark of {node.key.id} went back")
        node.high_watermark = high_watermark
        if high_watermark > log.end_offset:
            raise Violation("R7", "the log ends before its high watermark")
        if machine.is_leader and self.leaders.get(machine.state.epoch) == node.key.id:
            if log.end_offset < node.led_end:
                raise Violation("R3", f"the log that {node.key.id} leads became shorter")
            node.led_end = log.end_offset
        self._check_snapshots(node)

    def _check_snapshots(self, node: Node) -> None:
        log = node.log
        newest = log.newest_snapshot
        if log.log_start_offset and (newest is None or newest.offset < log.log_start_offset):
            raise Violation("R9", f"no snapshot at the log start {log.log_start_offset}")
        if newest is None:
            return
        if newest.offset > len(self.committed):
            raise Violation("R9", f"a snapshot at {newest.offset} is not committed")
        if self.committed[newest.offset - 1].epoch != newest.epoch:
            raise Violation("R9", f"a snapshot at {newest.offset} has a wrong epoch")
