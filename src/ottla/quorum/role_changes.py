"""The steps from one role to another: following a leader, leading, and waiting for an election."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ottla.model.types import Monotonic, NodeId
from ottla.quorum.effects import BeginEpoch
from ottla.quorum.election_state import NOBODY, ElectionState
from ottla.quorum.leadership import Leader, first_records
from ottla.quorum.messages import Leadership, address_in
from ottla.quorum.roles import Follower, Role, Unattached
from ottla.quorum.voters import Address

if TYPE_CHECKING:
    from ottla.quorum.machine import Quorum

EPOCH_MAX = 2**31 - 2  # One is left for the vote of a node that never votes again.
EPOCH_STEPS_MAX = 1 << 20  # More elections than any node misses while it is away.


def follow(quorum: "Quorum", leader: NodeId, epoch: int, address: Address, now: Monotonic) -> None:
    """`leader` leads `epoch`."""
    assert leader != quorum.key.id, "nobody follows itself"
    state = ElectionState(epoch, leader)
    if epoch == quorum.state.epoch:
        assert quorum.state.leader in (NOBODY, leader), "an epoch has one leader"
        state = replace(quorum.state, leader=leader)
    give_up_at = Monotonic(now + quorum.timing.fetch_timeout_ms)
    quorum.leader_address = address
    quorum.become(Follower(leader, address, give_up_at), state)


def may_follow(quorum: "Quorum", epoch: int, leader: NodeId) -> bool:
    """False for an epoch that no quorum reaches, and for a second leader of the present one.

    Only a broken or hostile node says either. An epoch is raised by one at an election.
    """
    if epoch > min(quorum.state.epoch + EPOCH_STEPS_MAX, EPOCH_MAX):
        return False
    known = quorum.state.leader
    return epoch != quorum.state.epoch or NOBODY in (leader, known) or leader == known


def detach(quorum: "Quorum", epoch: int, now: Monotonic) -> None:
    """A later epoch has begun, and nobody is known to lead it."""
    quorum.leader_address = None
    stand_at = Monotonic(now + quorum.timing.election_timeout(quorum.below))
    quorum.become(Unattached(stand_at), ElectionState(epoch))


def wait(quorum: "Quorum", role: Role, state: ElectionState | None = None) -> None:
    assert state is None or state.epoch >= quorum.state.epoch, "epochs only grow"
    quorum.become(role, state or quorum.state)


def lead(quorum: "Quorum", epoch: int, granting: Sequence[NodeId], now: Monotonic) -> None:
    start = quorum.log.end_offset
    leader = Leader(quorum.key, epoch, start, now, tuple(sorted(granting)), synced_end=start)
    quorum.become(leader, ElectionState(epoch, quorum.key.id))
    quorum.elections_lost = 0
    quorum.leader_address = quorum.endpoints.get(quorum.listener)
    quorum.effects.append(BeginEpoch(epoch, first_records(quorum.key.id, quorum.history, granting)))


def learn(quorum: "Quorum", said: Leadership, response: Any, now: Monotonic) -> None:  # noqa: ANN401
    """Follow the leader that a response names, if it is new or its address was unknown.

    The address counts as news (KIP-853): a leader that the log of this node does not name as a
    voter may be known by its id alone, from `quorum-state`.
    """
    epoch, leader = said
    if epoch < quorum.state.epoch or not may_follow(quorum, epoch, leader):
        return
    is_other = leader not in (NOBODY, quorum.key.id)
    address = address_in(response, leader) or quorum.address_of(leader)
    if is_other and address is not None:
        is_news = epoch > quorum.state.epoch or quorum.state.leader == NOBODY
        is_news = is_news or quorum.leader_address is None
        if is_news or isinstance(quorum.role, Unattached):
            follow(quorum, leader, epoch, address, now)
            return
    if epoch > quorum.state.epoch:
        detach(quorum, epoch, now)
