import pytest

from ottla.model.types import NodeId
from ottla.protocol.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeVoter,
)
from ottla.quorum.election_state import ElectionState
from ottla.quorum.quorum import BeginEpoch, PersistState, Quorum
from ottla.quorum.voters import Voter, Voters

ONE, DISK = NodeId(1), b"d" * 16
ALONE = Voters.of([Voter(ONE, DISK, {})])
CHANGE = LeaderChangeMessage(0, 1, [LeaderChangeVoter(1)], [LeaderChangeVoter(1)])


def quorum(kraft_version: int = 1, state: ElectionState | None = None) -> Quorum:
    return Quorum(ONE, DISK, ALONE, kraft_version, state or ElectionState())


def test_the_epoch_is_durable_before_its_first_record() -> None:
    alone = quorum(0)
    assert alone.log_loaded(0) == [
        PersistState(ElectionState(1, ONE)),
        BeginEpoch(1, (CHANGE,)),
    ]
    assert alone.is_leader


@pytest.mark.parametrize(("known", "in_log", "next_epoch"), [(4, 2, 5), (2, 4, 5), (0, 0, 1)])
def test_a_new_epoch_is_above_all_that_were(known: int, in_log: int, next_epoch: int) -> None:
    effects = quorum(0, ElectionState(known)).log_loaded(in_log)
    assert effects[0] == PersistState(ElectionState(next_epoch, ONE))


def test_voters_that_only_formatting_named_are_written_into_the_log() -> None:
    first = quorum()
    _, begin = first.log_loaded(0)
    assert begin == BeginEpoch(1, (CHANGE, KRaftVersionRecord(kraft_version=1), ALONE.to_record()))


def test_voters_that_the_log_names_are_not_written_again() -> None:
    later = quorum(state=ElectionState(1, ONE))
    later.voters_changed(ALONE)
    assert later.log_loaded(1)[1] == BeginEpoch(2, (CHANGE,))


def test_a_node_that_is_no_voter_never_stands() -> None:
    stranger = Quorum(NodeId(2), DISK, ALONE, 1, ElectionState())
    with pytest.raises(AssertionError):
        stranger.log_loaded(0)
