"""The newest voters count, until a truncation brings the former back."""

from ottla.quorum.voter_history import VoterHistory
from tests.unit.quorum.scene import voters


def history() -> VoterHistory:
    known = VoterHistory(voters(1), 0)
    known.kraft_version_read(3, 1)
    known.voters_read(4, voters(1, 2))
    known.voters_read(9, voters(1, 2, 3))
    return known


def test_what_is_in_the_log_counts_at_once() -> None:
    known = history()
    assert (known.voters, known.kraft_version, known.changed_at) == (voters(1, 2, 3), 1, 9)
    assert known.are_voters_in_log
    assert not VoterHistory(voters(1), 1).are_voters_in_log


def test_a_truncation_brings_back_what_was_before() -> None:
    known = history()
    known.truncated(9)
    assert (known.voters, known.changed_at) == (voters(1, 2), 4)
    known.truncated(2)
    assert (known.voters, known.kraft_version) == (voters(1), 0)
    assert not known.are_voters_in_log


def test_a_snapshot_names_the_voters_of_its_own_offset() -> None:
    known = history()
    assert known.voters_at(9) == voters(1, 2)
    assert known.voters_at(10) == voters(1, 2, 3)
    known.committed(10)
    known.truncated(0)
    assert known.voters == voters(1, 2, 3)  # What is committed is never cut away.


def test_a_loaded_snapshot_replaces_all_before_it() -> None:
    known = history()
    known.snapshot_loaded(20, voters(2, 3), 1)
    assert (known.voters, known.kraft_version, known.changed_at) == (voters(2, 3), 1, 19)
    first = VoterHistory(voters(9), 1)
    first.snapshot_loaded(0, voters(1), 1)  # What formatting wrote is not in the log yet.
    assert not first.are_voters_in_log
    static = VoterHistory(voters(1, 2), 0)
    static.snapshot_loaded(20, None, 0)
    assert (static.voters, static.kraft_version) == (voters(1, 2), 0)
