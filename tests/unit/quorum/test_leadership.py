"""What is committed, who still listens, and who should come next."""

from ottla.model.types import Monotonic, NodeId
from ottla.quorum.leadership import Leader, first_records
from ottla.quorum.voter_history import VoterHistory
from tests.unit.quorum.scene import key, voters

THREE, FIVE = voters(1, 2, 3), voters(1, 2, 3, 4, 5)


def leader(start: int = 10, synced: int = 12) -> Leader:
    return Leader(key(1), 4, start, Monotonic(1000), (), synced_end=synced)


def fetched(who: Leader, ends: dict[int, int], now: int = 1000, our_end: int = 12) -> Leader:
    for node, end in ends.items():
        who.fetched(key(node), end, our_end, Monotonic(now))
    return who


def test_a_majority_of_disks_commits() -> None:
    assert fetched(leader(), {2: 11}).committed_end(THREE) == 11
    assert fetched(leader(), {2: 11, 3: 12}).committed_end(THREE) == 12
    assert fetched(leader(), {2: 12}).committed_end(FIVE) is None
    assert fetched(leader(), {2: 12, 3: 11}).committed_end(FIVE) == 11


def test_the_leaders_own_log_counts_only_as_far_as_it_is_synced() -> None:
    assert fetched(leader(synced=11), {2: 12}).committed_end(THREE) == 11
    assert fetched(leader(synced=11), {2: 12, 3: 12}).committed_end(THREE) == 12


def test_an_entry_of_an_earlier_epoch_is_never_committed_by_counting() -> None:
    """Raft, figure 8: a majority has it, and a later leader may still overwrite it."""
    assert fetched(leader(), {2: 10, 3: 10}).committed_end(THREE) is None
    assert fetched(leader(), {2: 11}).committed_end(THREE) == 11


def test_observers_and_other_disks_do_not_count() -> None:
    assert fetched(leader(), {7: 12, 8: 12}).committed_end(THREE) is None
    who = leader()
    who.fetched(key(2)._replace(directory_id=b"x" * 16), 12, 12, Monotonic(1000))
    assert who.committed_end(THREE) is None


def test_a_leader_that_votes_no_more_does_not_count_itself() -> None:
    assert fetched(leader(), {2: 12}).committed_end(voters(2, 3)) is None
    assert fetched(leader(), {2: 12, 3: 11}).committed_end(voters(2, 3)) == 11


def test_leading_ends_when_a_majority_is_silent_for_too_long() -> None:
    assert leader().quorum_lost_at(voters(1), 2000) is None
    assert leader().quorum_lost_at(THREE, 2000) == 4000
    assert fetched(leader(), {2: 0}, now=5000).quorum_lost_at(THREE, 2000) == 8000
    assert fetched(leader(), {2: 0}, now=5000).quorum_lost_at(FIVE, 2000) == 4000


def test_voters_that_do_not_fetch_are_told_again() -> None:
    who = fetched(leader(), {2: 12}, now=5000)
    assert list(who.unheard(THREE, 1000, Monotonic(5500))) == [3]
    who.told_at[NodeId(3)] = Monotonic(5400)
    assert list(who.unheard(THREE, 1000, Monotonic(5500))) == []
    assert list(who.unheard(THREE, 1000, Monotonic(6000))) == [2]
    assert who.to_be_told_at(NodeId(3), THREE, 1000) == 6400


def test_the_one_with_the_most_comes_next() -> None:
    who = fetched(leader(), {2: 11, 3: 12})
    assert [successor.id for successor in who.successors(THREE)] == [3, 2]


def test_a_replica_is_caught_up_as_of_the_last_time_it_had_all() -> None:
    who = fetched(leader(), {2: 10}, now=1000, our_end=12)
    assert who.replica_of(NodeId(2), THREE).caught_up_at is None
    fetched(who, {2: 12}, now=2000, our_end=20)
    assert who.replica_of(NodeId(2), THREE).caught_up_at == 1000
    fetched(who, {2: 20}, now=3000, our_end=20)
    assert who.replica_of(NodeId(2), THREE).caught_up_at == 3000


def test_observers_that_left_are_forgotten_in_time() -> None:
    who = fetched(leader(), {2: 12, 7: 12})
    who.forget_silent_observers(THREE, Monotonic(1000 + 300_001))
    assert [replica.id for replica in who.replicas] == [2]


def test_voters_are_written_by_the_first_leader_alone() -> None:
    history = VoterHistory(THREE, 1)
    assert len(first_records(NodeId(1), history, [NodeId(2), NodeId(1)])) == 3
    history.voters_read(2, THREE)
    (change,) = first_records(NodeId(1), history, [NodeId(2), NodeId(1)])
    assert [voter.voter_id for voter in change.granting_voters] == [1, 2]  # type: ignore[union-attr]
    assert len(first_records(NodeId(1), VoterHistory(THREE, 0), [])) == 1
