"""One node's part in the quorum of the metadata log: a pure machine (KIP-595, 630, 853, 996).

Events are method calls with `now`; what has to be done returns as effects, in order: a state is
durable before what follows from it is sent. Requests and answers are the wire's own messages.
Here each event is routed to its subject: `elections`, `leader_fetch` and `follower_fetch` for the
two sides of replication, `voter_changes`; `role_changes` has the steps that they share.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ottla.model.machine import Ticket
from ottla.model.types import Monotonic, NodeId, Offset
from ottla.protocol.messages import (
    add_raft_voter,
    api_versions,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from ottla.quorum import elections, follower_fetch, leader_fetch, role_changes, voter_changes
from ottla.quorum.effects import (
    Committed,
    Effect,
    EndEpoch,
    PersistState,
    Reply,
    Send,
)
from ottla.quorum.election_state import NOBODY, ElectionState
from ottla.quorum.elections import may_stand
from ottla.quorum.leadership import Leader
from ottla.quorum.log_view import LogView
from ottla.quorum.messages import Leadership
from ottla.quorum.outbox import Outbox
from ottla.quorum.roles import Candidate, Follower, Prospective, Resigned, Role, Unattached
from ottla.quorum.timing import Below, Timing
from ottla.quorum.voter_history import VoterHistory
from ottla.quorum.voters import Address, ReplicaKey, Voters


class Quorum:
    def __init__(
        self,
        key: ReplicaKey,
        cluster_id: str,
        log: LogView,
        history: VoterHistory,
        state: ElectionState,
        *,
        below: Below,
        timing: Timing | None = None,
        listener: str = "CONTROLLER",
        endpoints: Mapping[str, Address] | None = None,
        bootstrap: Sequence[Address] = (),
        is_controller: bool = True,
    ) -> None:
        """`endpoints` are where this node's controller listens; a broker alone has none."""
        self.key = key
        self.cluster_id = cluster_id
        self.log = log
        self.history = history
        self.state = state
        self.below = below
        self.timing = timing or Timing()
        self.listener = listener
        self.endpoints = endpoints or {}
        self.bootstrap = bootstrap
        self.is_controller = is_controller
        self.role: Role | Leader = Unattached(Monotonic(0))
        self.leader_address: Address | None = None  # Of the known leader, wherever we know it from.
        self.high_watermark: Offset | None = None
        self.elections_lost = 0
        self.parked: list[leader_fetch.Parked] = []
        self.change: voter_changes.Change | None = None
        self.effects: list[Effect] = []
        self.outbox = Outbox(self.timing)

    @property
    def voters(self) -> Voters:
        return self.history.voters

    @property
    def kraft_version(self) -> int:
        return self.history.kraft_version

    @property
    def is_leader(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def is_voter(self) -> bool:
        return self.is_controller and self.voters.has(*self.key)

    @property
    def is_alone(self) -> bool:
        """Whether this node is the only voter: what it has on disk is committed."""
        return self.is_voter and self.voters.is_alone

    @property
    def leadership(self) -> Leadership:
        """What we tell others: a leader that has resigned, or was restarted, is none."""
        is_over = self.state.leader == self.key.id and not self.is_leader
        return Leadership(self.state.epoch, NOBODY if is_over else self.state.leader)

    # What happens.

    def started(self, now: Monotonic) -> list[Effect]:
        """The log is loaded: find the leader, or become it."""
        if self.log.last_epoch > self.state.epoch:
            self.become(self.role, ElectionState(self.log.last_epoch))
        leader = self.state.leader
        address = self.address_of(leader)
        if self.is_alone:
            elections.campaign(self, now)
        elif leader not in (NOBODY, self.key.id) and address is not None:
            role_changes.follow(self, leader, self.state.epoch, address, now)
        else:
            self.role = Unattached(Monotonic(now + self.timing.hint(self.below, 0)))
        return self._finish(now)

    def tick(self, now: Monotonic) -> list[Effect]:
        role = self.role
        match role:
            case Leader():
                lost_at = role.quorum_lost_at(self.voters, self.timing.fetch_timeout_ms)
                if lost_at is not None and now >= lost_at:
                    elections.resign(self, role, now)
                else:
                    leader_fetch.time_passed(self, role, now)
                    voter_changes.time_passed(self, now)
            case Follower():
                if now >= role.give_up_at:
                    elections.leader_lost(self, now)
                elif role.stand_at is not None and now >= role.stand_at:
                    elections.leader_lost(self, now, by_hint=True)
            case Unattached() | Resigned() if may_stand(self) or isinstance(role, Resigned):
                is_leaving = isinstance(role, Resigned) and role.is_leaving
                if now >= role.stand_at and not is_leaving:
                    elections.leader_lost(self, now)
            case Prospective() | Candidate():
                if now >= role.give_up_at:
                    elections.gave_up(self, role, now)
                else:
                    elections.count(self, role, now)
        return self._finish(now)

    def received(self, ticket: Ticket, request: Any, now: Monotonic) -> list[Effect]:  # noqa: ANN401
        """Another node asks; `Misplaced` if it is not about the metadata log."""
        match request:
            case vote.Request():
                elections.vote_requested(self, ticket, request, now)
            case begin_quorum_epoch.Request():
                elections.begin_requested(self, ticket, request, now)
            case end_quorum_epoch.Request():
                elections.end_requested(self, ticket, request, now)
            case fetch.Request():
                leader_fetch.fetch_requested(self, ticket, request, now)
            case fetch_snapshot.Request():
                leader_fetch.snapshot_requested(self, ticket, request, now)
            case add_raft_voter.Request():
                voter_changes.add_requested(self, ticket, request, now)
            case remove_raft_voter.Request():
                voter_changes.remove_requested(self, ticket, request, now)
            case update_raft_voter.Request():
                voter_changes.update_requested(self, ticket, request, now)
        return self._finish(now)

    def answered(
        self,
        to: NodeId,
        request: Any,  # noqa: ANN401
        response: Any,  # noqa: ANN401
        now: Monotonic,
    ) -> list[Effect]:
        """The answer to what `Send` asked for; `Misplaced` if it is about something else."""
        if not self.outbox.answered(to, request):
            return []  # A role ago.
        if getattr(response, "error_code", 0) and not isinstance(
            request, update_raft_voter.Request
        ):
            self.outbox.retry_later(to, type(request), now)
            return self._finish(now)
        match request:
            case vote.Request():
                elections.vote_answered(self, to, request, response, now)
            case begin_quorum_epoch.Request() | end_quorum_epoch.Request():
                elections.told(self, to, response, now)
            case fetch.Request():
                follower_fetch.fetch_answered(self, to, response, now)
            case fetch_snapshot.Request():
                follower_fetch.snapshot_answered(self, to, response, now)
            case update_raft_voter.Request():
                follower_fetch.update_answered(self, response, now)
            case api_versions.Request():
                voter_changes.versions_answered(self, response, now)
        return self._finish(now)

    def failed(
        self,
        to: NodeId,
        request: Any,  # noqa: ANN401
        now: Monotonic,
        *,
        is_closed: bool,
    ) -> list[Effect]:
        """No answer: the connection closed or was refused (`is_closed`), or time ran out."""
        if not self.outbox.failed(to, request, now):
            return []
        role = self.role
        if isinstance(role, Prospective | Candidate) and is_closed:
            elections.unreachable(self, role, to, now)
        elif isinstance(role, Follower) and to == role.leader:
            follower_fetch.leader_silent(self, role, now, is_closed=is_closed)
        elif isinstance(request, api_versions.Request):
            voter_changes.unreachable(self, now)
        elif isinstance(role, Resigned) and is_closed:
            role.untold.discard(to)
        return self._finish(now)

    def appended(self, now: Monotonic) -> list[Effect]:
        """Our log has grown: by what we lead, or by what we fetched, which is synced then."""
        if isinstance(self.role, Leader):
            leader_fetch.log_grew(self, self.role, now)
            voter_changes.log_grew(self)
        elif isinstance(self.role, Follower):
            follower_fetch.written(self, self.role, now)
        return self._finish(now)

    def synced(self, end: Offset, now: Monotonic) -> list[Effect]:
        """Of the log that we lead, everything below `end` is on disk."""
        if isinstance(self.role, Leader):
            assert end <= self.log.end_offset, "only what is in the log can be synced"
            self.role.synced_end = max(self.role.synced_end, end)
            self.advance(now)
        return self._finish(now)

    def not_written(self, now: Monotonic) -> list[Effect]:
        """What was fetched could not be written, or is no part of a log."""
        if isinstance(self.role, Follower):
            follower_fetch.not_written(self, self.role, now)
        return self._finish(now)

    def snapshot_installed(self, now: Monotonic) -> list[Effect]:
        """Our log begins at the newest snapshot; the leader may be another by now."""
        follower_fetch.snapshot_installed(self, now)
        return self._finish(now)

    def resign(self, now: Monotonic) -> list[Effect]:
        """This process stops: hand the epoch over, if it is ours."""
        if isinstance(self.role, Leader):
            elections.resign(self, self.role, now, is_leaving=True)
        return self._finish(now)

    @property
    def has_told_all(self) -> bool:
        """Whether everyone knows that this node has resigned."""
        return not isinstance(self.role, Resigned) or not self.role.untold

    def next_deadline(self) -> Monotonic | None:
        """When `tick` has something to do at the latest."""
        times = self.outbox.deadlines()
        role = self.role
        if isinstance(role, Leader):
            times += leader_fetch.deadlines(self, role)
            times += [] if self.change is None else [self.change.give_up_at]
        elif not isinstance(role, Unattached) or may_stand(self):
            times += role.deadlines()
        return min(times, default=None)

    # What its subjects call.

    def advance(self, now: Monotonic) -> None:
        """Commit what a majority has."""
        assert isinstance(self.role, Leader), "only a leader counts"
        end = self.role.committed_end(self.voters)
        if end is not None and end > (self.high_watermark or 0):
            self.commit(end)
            leader_fetch.committed(self, now)
            voter_changes.committed(self, now)

    def commit(self, high_watermark: Offset) -> None:
        assert high_watermark > (self.high_watermark or 0), "what is committed stays so"
        self.high_watermark = high_watermark
        self.effects.append(Committed(high_watermark))

    def send(self, to: NodeId, address: Address | None, request: Any, now: Monotonic) -> None:  # noqa: ANN401
        """Unless the same is under way, or failed just now."""
        if address is not None and not self.outbox.is_busy(to, type(request), now):
            self.outbox.sent(to, request)
            self.effects.append(Send(to, address, request))

    def address_of(self, node: NodeId) -> Address | None:
        voter = self.voters.by_id.get(node)
        return voter.address(self.listener) if voter is not None else None

    def answer(self, ticket: Ticket, response: Any) -> None:  # noqa: ANN401
        self.effects.append(Reply(ticket, response))

    def become(self, role: Role | Leader, state: ElectionState) -> None:
        """Change the role; what is under way belongs to the role before."""
        assert state.epoch >= self.state.epoch, "epochs only grow"
        was = self.role
        self.role = role
        self.outbox.clear()
        if isinstance(was, Leader):
            # First: it does not depend on the state, which may take long to write.
            self.effects.append(EndEpoch(was.epoch))
        if state != self.state:
            self.state = state
            self.effects.append(PersistState(state))
        if isinstance(was, Leader):
            leader_fetch.stopped_leading(self)
            voter_changes.stopped_leading(self)

    # Inside.

    def _finish(self, now: Monotonic) -> list[Effect]:
        """Ask whoever this role has to ask; return all that is to be done."""
        self.outbox.forget_past(now)
        match self.role:
            case Prospective() | Candidate() as ballot:
                elections.ask_for_votes(self, ballot, now)
                if ballot.is_lost:
                    follower_fetch.ask_around(self, now)
            case Follower() as role:
                follower_fetch.ask_leader(self, role, now)
            case Unattached():
                if not self.is_voter:
                    follower_fetch.ask_around(self, now)
            case Leader() as leader:
                elections.tell_voters(self, leader, now)
            case Resigned() as resigned:
                elections.tell_resigned(self, resigned, now)
        effects, self.effects = self.effects, []
        return effects
