"""One node's part in the quorum of the metadata log: a pure machine (KIP-595, 630, 853, 996).

Events are method calls with `now`; what has to be done returns as effects, in order: a state is
durable before what follows from it is sent. Requests and answers are the wire's own messages.
`standing` is about elections, `serving` about the leader's side of fetches, `following` about
the other side of them, `voter_changes` adds and removes voters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from ottla.quorum import following, serving, standing, voter_changes
from ottla.quorum.effects import (
    BeginEpoch,
    Committed,
    Effect,
    EndEpoch,
    PersistState,
    Reply,
    Send,
)
from ottla.quorum.election_state import NOBODY, ElectionState
from ottla.quorum.leadership import Leader, first_records
from ottla.quorum.log_view import LogView
from ottla.quorum.messages import Leadership, address_in
from ottla.quorum.roles import Candidate, Follower, Prospective, Resigned, Role, Unattached
from ottla.quorum.standing import may_stand
from ottla.quorum.timing import Below, Timing
from ottla.quorum.voter_history import VoterHistory
from ottla.quorum.voters import Address, ReplicaKey, Voters

EPOCH_MAX = 2**31 - 2  # One is left for the vote of a node that never votes again.
EPOCH_STEPS_MAX = 1 << 20  # More elections than any node misses while it is away.


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
        self.parked: list[serving.Parked] = []
        self.change: voter_changes.Change | None = None
        self.effects: list[Effect] = []
        self._under_way: dict[tuple[NodeId, type], Any] = {}
        self._retry_at: dict[tuple[NodeId, type], Monotonic] = {}
        self._failures: dict[tuple[NodeId, type], int] = {}

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
    def leadership(self) -> Leadership:
        """What we tell others: a leader that has resigned, or was restarted, is none."""
        is_over = self.state.leader == self.key.id and not self.is_leader
        return Leadership(self.state.epoch, NOBODY if is_over else self.state.leader)

    # What happens.

    def started(self, now: Monotonic) -> list[Effect]:
        """The log is loaded: find the leader, or become it."""
        if self.log.last_epoch > self.state.epoch:
            self._become(self.role, ElectionState(self.log.last_epoch))
        leader = self.state.leader
        address = self.address_of(leader)
        if self.is_voter and self.voters.is_alone:
            standing.campaign(self, now)
        elif leader not in (NOBODY, self.key.id) and address is not None:
            self.follow(leader, self.state.epoch, address, now)
        else:
            self.role = Unattached(Monotonic(now + self.timing.hint(self.below, 0)))
        return self._finish(now)

    def tick(self, now: Monotonic) -> list[Effect]:
        role = self.role
        match role:
            case Leader():
                lost_at = role.quorum_lost_at(self.voters, self.timing.fetch_timeout_ms)
                if lost_at is not None and now >= lost_at:
                    standing.resign(self, role, now)
                else:
                    serving.time_passed(self, role, now)
                    voter_changes.time_passed(self, now)
            case Follower():
                if now >= role.give_up_at:
                    standing.leader_lost(self, now)
                elif role.stand_at is not None and now >= role.stand_at:
                    standing.leader_lost(self, now, by_hint=True)
            case Unattached() | Resigned() if may_stand(self) or isinstance(role, Resigned):
                is_leaving = isinstance(role, Resigned) and role.is_leaving
                if now >= role.stand_at and not is_leaving:
                    standing.leader_lost(self, now)
            case Prospective() | Candidate():
                if now >= role.give_up_at:
                    standing.gave_up(self, role, now)
                else:
                    standing.count(self, role, now)
        return self._finish(now)

    def received(self, ticket: Ticket, request: Any, now: Monotonic) -> list[Effect]:  # noqa: ANN401
        """Another node asks; `Misplaced` if it is not about the metadata log."""
        match request:
            case vote.Request():
                standing.vote_requested(self, ticket, request, now)
            case begin_quorum_epoch.Request():
                standing.begin_requested(self, ticket, request, now)
            case end_quorum_epoch.Request():
                standing.end_requested(self, ticket, request, now)
            case fetch.Request():
                serving.fetch_requested(self, ticket, request, now)
            case fetch_snapshot.Request():
                serving.snapshot_requested(self, ticket, request, now)
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
        key = (to, type(request))
        if self._under_way.get(key) is not request:
            return []  # A role ago.
        del self._under_way[key]
        self._failures.pop(key, None)
        if getattr(response, "error_code", 0) and not isinstance(
            request, update_raft_voter.Request
        ):
            self.retry_later(to, type(request), now)
            return self._finish(now)
        match request:
            case vote.Request():
                standing.vote_answered(self, to, request, response, now)
            case begin_quorum_epoch.Request() | end_quorum_epoch.Request():
                standing.told(self, to, response, now)
            case fetch.Request():
                following.fetch_answered(self, to, response, now)
            case fetch_snapshot.Request():
                following.snapshot_answered(self, to, response, now)
            case update_raft_voter.Request():
                following.update_answered(self, response, now)
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
        key = (to, type(request))
        if self._under_way.get(key) is not request:
            return []
        del self._under_way[key]
        self.retry_later(to, type(request), now)
        role = self.role
        if isinstance(role, Prospective | Candidate) and is_closed:
            standing.unreachable(self, role, to, now)
        elif isinstance(role, Follower) and to == role.leader:
            following.leader_silent(self, role, now, is_closed=is_closed)
        elif isinstance(request, api_versions.Request):
            voter_changes.unreachable(self, now)
        elif isinstance(role, Resigned) and is_closed:
            role.untold.discard(to)
        return self._finish(now)

    def appended(self, now: Monotonic) -> list[Effect]:
        """Our log has grown: by what we lead, or by what we fetched, which is synced then."""
        if isinstance(self.role, Leader):
            serving.log_grew(self, self.role, now)
            voter_changes.log_grew(self)
        elif isinstance(self.role, Follower):
            following.written(self, self.role, now)
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
            following.not_written(self, self.role, now)
        return self._finish(now)

    def snapshot_installed(self, now: Monotonic) -> list[Effect]:
        """Our log begins at the newest snapshot; the leader may be another by now."""
        following.snapshot_installed(self, now)
        return self._finish(now)

    def resign(self, now: Monotonic) -> list[Effect]:
        """This process stops: hand the epoch over, if it is ours."""
        if isinstance(self.role, Leader):
            standing.resign(self, self.role, now, is_leaving=True)
        return self._finish(now)

    @property
    def has_told_all(self) -> bool:
        """Whether everyone knows that this node has resigned."""
        return not isinstance(self.role, Resigned) or not self.role.untold

    def next_deadline(self) -> Monotonic | None:
        """When `tick` has something to do at the latest."""
        times: list[Monotonic] = [*self._retry_at.values()]
        role = self.role
        if isinstance(role, Leader):
            times += serving.deadlines(self, role)
            times += [] if self.change is None else [self.change.give_up_at]
        elif not isinstance(role, Unattached) or may_stand(self):
            times += role.deadlines()
        return min(times, default=None)

    # What roles are changed by.

    def follow(self, leader: NodeId, epoch: int, address: Address, now: Monotonic) -> None:
        """`leader` leads `epoch`."""
        assert leader != self.key.id, "nobody follows itself"
        state = ElectionState(epoch, leader)
        if epoch == self.state.epoch:
            assert self.state.leader in (NOBODY, leader), "an epoch has one leader"
            state = replace(self.state, leader=leader)
        give_up_at = Monotonic(now + self.timing.fetch_timeout_ms)
        self.leader_address = address
        self._become(Follower(leader, address, give_up_at), state)

    def may_follow(self, epoch: int, leader: NodeId) -> bool:
        """False for an epoch that no quorum reaches, and for a second leader of the present one.

        Only a broken or hostile node says either. An epoch is raised by one at an election.
        """
        if epoch > min(self.state.epoch + EPOCH_STEPS_MAX, EPOCH_MAX):
            return False
        known = self.state.leader
        return epoch != self.state.epoch or NOBODY in (leader, known) or leader == known

    def detach(self, epoch: int, now: Monotonic) -> None:
        """A later epoch has begun, and nobody is known to lead it."""
        self.leader_address = None
        stand_at = Monotonic(now + self.timing.election_timeout(self.below))
        self._become(Unattached(stand_at), ElectionState(epoch))

    def wait(self, role: Role, state: ElectionState | None = None) -> None:
        assert state is None or state.epoch >= self.state.epoch, "epochs only grow"
        self._become(role, state or self.state)

    def lead(self, epoch: int, granting: Sequence[NodeId], now: Monotonic) -> None:
        start = self.log.end_offset
        leader = Leader(self.key, epoch, start, now, tuple(sorted(granting)), synced_end=start)
        self._become(leader, ElectionState(epoch, self.key.id))
        self.elections_lost = 0
        self.leader_address = self.endpoints.get(self.listener)
        self.effects.append(BeginEpoch(epoch, first_records(self.key.id, self.history, granting)))

    def learn(self, said: Leadership, response: Any, now: Monotonic) -> None:  # noqa: ANN401
        """Follow the leader that a response names, if it is new or its address was unknown.

        The address counts as news (KIP-853): a leader that the log of this node does not name as a
        voter may be known by its id alone, from `quorum-state`.
        """
        epoch, leader = said
        if epoch < self.state.epoch or not self.may_follow(epoch, leader):
            return
        is_other = leader not in (NOBODY, self.key.id)
        address = address_in(response, leader) or self.address_of(leader)
        if is_other and address is not None:
            is_news = epoch > self.state.epoch or self.state.leader == NOBODY
            is_news = is_news or self.leader_address is None
            if is_news or isinstance(self.role, Unattached):
                self.follow(leader, epoch, address, now)
                return
        if epoch > self.state.epoch:
            self.detach(epoch, now)

    def advance(self, now: Monotonic) -> None:
        """Commit what a majority has."""
        assert isinstance(self.role, Leader), "only a leader counts"
        end = self.role.committed_end(self.voters)
        if end is not None and end > (self.high_watermark or 0):
            self.commit(end)
            serving.committed(self, now)
            voter_changes.committed(self, now)

    def commit(self, high_watermark: Offset) -> None:
        assert high_watermark > (self.high_watermark or 0), "what is committed stays so"
        self.high_watermark = high_watermark
        self.effects.append(Committed(high_watermark))

    # What is sent.

    def send(self, to: NodeId, address: Address | None, request: Any, now: Monotonic) -> None:  # noqa: ANN401
        """Unless the same is under way, or failed just now."""
        key = (to, type(request))
        if address is not None and not self.is_busy(to, type(request), now):
            self._under_way[key] = request
            self.effects.append(Send(to, address, request))

    def is_busy(self, to: NodeId, kind: type, now: Monotonic) -> bool:
        key = (to, kind)
        return key in self._under_way or self._retry_at.get(key, 0) > now

    def is_waiting(self, to: NodeId, kind: type) -> bool:
        """Whether something else than the clock will say when to send it next."""
        return (to, kind) in self._under_way or (to, kind) in self._retry_at

    def retry_later(self, to: NodeId, kind: type, now: Monotonic) -> None:
        failures = self._failures[(to, kind)] = self._failures.get((to, kind), -1) + 1
        self._retry_at[(to, kind)] = Monotonic(now + self.timing.retry(failures))

    def address_of(self, node: NodeId) -> Address | None:
        voter = self.voters.by_id.get(node)
        return voter.address(self.listener) if voter is not None else None

    def answer(self, ticket: Ticket, response: Any) -> None:  # noqa: ANN401
        self.effects.append(Reply(ticket, response))

    # Inside.

    def _finish(self, now: Monotonic) -> list[Effect]:
        """Ask whoever this role has to ask; return all that is to be done."""
        self._retry_at = {key: at for key, at in self._retry_at.items() if at > now}
        match self.role:
            case Prospective() | Candidate() as ballot:
                standing.ask_for_votes(self, ballot, now)
                if ballot.is_lost:
                    following.ask_around(self, now)
            case Follower() as role:
                following.ask_leader(self, role, now)
            case Unattached():
                if not self.is_voter:
                    following.ask_around(self, now)
            case Leader() as leader:
                standing.tell_voters(self, leader, now)
            case Resigned() as resigned:
                standing.tell_resigned(self, resigned, now)
        effects, self.effects = self.effects, []
        return effects

    def _become(self, role: Role | Leader, state: ElectionState) -> None:
        assert state.epoch >= self.state.epoch, "epochs only grow"
        was = self.role
        self.role = role
        self._under_way.clear()
        if isinstance(was, Leader):
            # First: it does not depend on the state, which may take long to write.
            self.effects.append(EndEpoch(was.epoch))
        if state != self.state:
            self.state = state
            self.effects.append(PersistState(state))
        if isinstance(was, Leader):
            serving.stopped_leading(self)
            voter_changes.stopped_leading(self)
