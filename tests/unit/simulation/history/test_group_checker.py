"""The checker of groups: for each anomaly a history that has it, and one that nearly has."""

from ottla.simulation.history.anomalies import Anomaly
from ottla.simulation.history.history_checker import check
from ottla.simulation.history.operations import NO_OFFSET, Commit, Committed, Kind, Outcome, Owned
from tests.unit.simulation.histories import KEY, HistoryWriter

GROUP = "billing"


class Group:
    def __init__(self) -> None:
        self.written = HistoryWriter()

    def commit(self, offset: int, **more: object) -> "Group":
        self.written.add(Kind.GROUP, Commit(GROUP, KEY, offset), **more)  # type: ignore[arg-type]
        return self

    def fetch(self, offset: int, **more: object) -> "Group":
        self.written.add(Kind.GROUP, Committed(GROUP, KEY, offset), **more)  # type: ignore[arg-type]
        return self

    def owned(self, process: str, generation: int) -> "Group":
        self.written.add(Kind.GROUP, Owned(GROUP, generation, [KEY]), process=process)
        return self

    @property
    def anomalies(self) -> set[Anomaly]:
        return set(check(self.written.operations).anomalies)


def test_the_last_commit_is_what_is_fetched() -> None:
    assert not Group().fetch(NO_OFFSET).commit(3).fetch(3).commit(5).fetch(5).anomalies


def test_none_after_a_commit_is_found() -> None:
    assert Group().commit(3).fetch(NO_OFFSET).anomalies == {Anomaly.LOST_COMMIT}


def test_none_after_a_commit_that_nobody_answered_is_possible() -> None:
    assert not Group().commit(3, outcome=Outcome.INFO).fetch(NO_OFFSET).anomalies


def test_none_while_the_first_commit_is_under_way_is_possible() -> None:
    assert not Group().commit(3, ended_ns=50).fetch(NO_OFFSET).anomalies


def test_an_offset_that_nobody_committed_is_found() -> None:
    assert Group().commit(3).fetch(4).anomalies == {Anomaly.UNEXPLAINED_COMMIT}


def test_an_offset_whose_commit_failed_is_found() -> None:
    failed = Group().commit(3, outcome=Outcome.FAIL).fetch(3)
    assert failed.anomalies == {Anomaly.UNEXPLAINED_COMMIT}


def test_an_offset_that_was_replaced_is_found() -> None:
    assert Group().commit(3).commit(5).fetch(3).anomalies == {Anomaly.UNEXPLAINED_COMMIT}


def test_of_two_commits_at_once_either_may_be_the_last() -> None:
    assert not Group().commit(3, ended_ns=15).commit(5).fetch(3).anomalies


def test_a_commit_that_nobody_answered_may_take_effect_late() -> None:
    assert not Group().commit(3, outcome=Outcome.INFO).commit(5).fetch(3).anomalies


def test_an_offset_that_is_committed_only_later_is_found() -> None:
    assert Group().fetch(3).commit(3).anomalies == {Anomaly.UNEXPLAINED_COMMIT}


def test_two_owners_in_one_generation_are_found() -> None:
    assert Group().owned("c", 1).owned("d", 1).anomalies == {Anomaly.TWO_OWNERS}


def test_a_partition_may_change_hands_with_the_generation() -> None:
    assert not Group().owned("c", 1).owned("c", 1).owned("d", 2).anomalies
