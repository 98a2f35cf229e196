"""One machine of a quorum on a stage: what it is told, and what it then wants done."""

# ruff: noqa: ANN401

from collections.abc import Sequence
from typing import Any

from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import fetch, vote
from ottla.quorum import effects as fx
from ottla.quorum.election_state import ElectionState
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.machine import Quorum
from ottla.quorum.messages import (
    Leadership,
    begin_request,
    fetch_request,
    partition_of,
    vote_request,
    vote_response,
)
from ottla.quorum.voter_history import VoterHistory
from ottla.quorum.voters import Address, ReplicaKey, Voter, Voters
from tests.simulation.quorum_node import Entry, PureLog

CLUSTER = "c"


def key(node: int) -> ReplicaKey:
    return ReplicaKey(NodeId(node), bytes([node]) * 16)


def address(node: int) -> Address:
    return Address(f"host{node}", 9093)


def voter(node: int) -> Voter:
    return Voter(NodeId(node), key(node).directory_id, {"CONTROLLER": address(node)})


def voters(*nodes: int) -> Voters:
    return Voters.of(map(voter, nodes))


class Stage:
    """Node 1; its log is changed by hand or by `obey`."""

    def __init__(
        self,
        *,
        among: Sequence[int] = (1, 2, 3),
        epochs: Sequence[int] = (),
        state: ElectionState | None = None,
        is_controller: bool = True,
        endpoints: dict[str, Address] | None = None,
    ) -> None:
        self.log = PureLog()
        self.log.entries = [Entry(epoch, index) for index, epoch in enumerate(epochs)]
        self.now = Monotonic(1000)
        self.quorum = Quorum(
            key(1),
            CLUSTER,
            self.log,
            VoterHistory(voters(*among), 1),
            state or ElectionState(),
            below=lambda span: span // 2,
            endpoints=endpoints if endpoints is not None else {"CONTROLLER": address(1)},
            bootstrap=[Address("bootstrap", 9093)],
            is_controller=is_controller,
        )
        self.sent: list[fx.Send] = []
        self.replies: list[Any] = []

    def start(self) -> list[fx.Effect]:
        return self.obey(self.quorum.started(self.now))

    def wait(self, ms: int) -> list[fx.Effect]:
        self.now = Monotonic(self.now + ms)
        return self.obey(self.quorum.tick(self.now))

    def ask(self, request: Any) -> Any:
        """What is answered to it at once; None if nothing is."""
        before = len(self.replies)
        self.effects = self.obey(self.quorum.received(7, request, self.now))
        return self.replies[before] if len(self.replies) > before else None

    def answer(self, request: Any, response: Any, to: int | None = None) -> list[fx.Effect]:
        target = to if to is not None else self.target_of(request)
        return self.obey(self.quorum.answered(NodeId(target), request, response, self.now))

    def fail(self, request: Any, *, is_closed: bool) -> list[fx.Effect]:
        target = NodeId(self.target_of(request))
        return self.obey(self.quorum.failed(target, request, self.now, is_closed=is_closed))

    def target_of(self, request: Any) -> int:
        return next(send.to for send in self.sent if send.request is request)

    def obey(self, effects: list[fx.Effect]) -> list[fx.Effect]:
        done: list[fx.Effect] = []
        for effect in effects:
            done.append(effect)
            match effect:
                case fx.Send():
                    self.sent.append(effect)
                case fx.Reply():
                    self.replies.append(effect.response)
                case fx.BeginEpoch() | fx.AppendControl():
                    for record in effect.records:
                        self.log.entries.append(Entry(effect.epoch, record))
                        if hasattr(record, "voters") and not hasattr(record, "leader_id"):
                            offset = self.log.end_offset - 1
                            self.quorum.history.voters_read(offset, Voters.from_record(record))
                    done += self.obey(self.quorum.appended(self.now))
                    done += self.obey(self.quorum.synced(self.log.end_offset, self.now))
                case fx.TruncateTo():
                    del self.log.entries[effect.offset :]
                    self.quorum.history.truncated(effect.offset)
                    done += self.obey(self.quorum.appended(self.now))
        return done

    def requests(self, kind: type, to: int | None = None) -> list[Any]:
        """Those sent last, the newest first."""
        return [
            send.request
            for send in reversed(self.sent)
            if isinstance(send.request, kind) and to in (None, send.to)
        ]

    # Others' parts.

    def elect(self) -> None:
        """The others vote for node 1."""
        if not self.sent:
            self.start()
        self.wait(3000)
        for _ in range(2):
            request = self.requests(vote.Request, to=2)[0]
            epoch = partition_of(request).replica_epoch
            self.answer(request, vote_response(Leadership(epoch, NodeId(-1)), None, granted=True))
        assert self.quorum.is_leader

    def led_by(self, leader: int, epoch: int) -> None:
        if not self.sent:
            self.start()
        said = Leadership(epoch, NodeId(leader))
        where = {"CONTROLLER": address(leader)}
        self.ask(begin_request(CLUSTER, said, key(1), where))

    def fetch(
        self, node: int, offset: int, epoch: int, *, wait_ms: int = 0, knows: int | None = None
    ) -> Any:
        request = fetch_request(
            CLUSTER,
            self.quorum.state.epoch,
            key(node),
            OffsetAndEpoch(offset, epoch),
            knows,
            wait_ms=wait_ms,
            bytes_max=1 << 20,
        )
        before = len(self.replies)
        self.ask(request)  # Others, who waited, may be answered first.
        answers = [r for r in self.replies[before:] if isinstance(r, fetch.Response)]
        return partition_of(answers[-1]) if answers else None

    def vote(self, node: int, epoch: int, last: tuple[int, int], *, pre_vote: bool = False) -> Any:
        request = vote_request(
            CLUSTER, epoch, key(node), key(1), OffsetAndEpoch(*last), pre_vote=pre_vote
        )
        return partition_of(self.ask(request))
