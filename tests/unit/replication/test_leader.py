import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic, NodeId
from ottla.replication.leader import Assignment, Committed, Effect, Leader, ProposeIsr

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
ALL = (ONE, TWO, THREE)
LAG_MS = 30


class Leading:
    """Broker 1 leads; 2 and 3 follow, each in broker epoch ten times its id."""

    def __init__(
        self,
        isr: tuple[NodeId, ...] = ALL,
        *,
        isr_min: int = 2,
        log_end: int = 10,
        high_watermark: int = 10,
        own_end: int | None = None,
        replicas: tuple[NodeId, ...] = ALL,
    ) -> None:
        self.eligible = {(TWO, 20), (THREE, 30)}
        self.assignment = Assignment(5, 7, replicas, isr)
        self.leader = Leader(
            ONE,
            self.assignment,
            isr_min=isr_min,
            lag_ms_max=LAG_MS,
            log_end=log_end,
            own_end=own_end,
            high_watermark=high_watermark,
            is_eligible=lambda node, epoch: (node, epoch) in self.eligible,
            now=Monotonic(0),
        )

    def appended(self, end: int, now: int = 1) -> list[Effect]:
        return self.leader.appended(end, Monotonic(now))

    def fetched(self, node: NodeId, offset: int, now: int = 1, epoch: int = 0) -> list[Effect]:
        return self.leader.fetched(node, offset, epoch or node * 10, Monotonic(now))

    def tick(self, now: int) -> list[Effect]:
        return self.leader.tick(Monotonic(now))


def proposal(*members: tuple[NodeId, int]) -> ProposeIsr:
    return ProposeIsr(members, 5, 7)


def test_a_record_is_committed_when_everyone_in_sync_holds_it() -> None:
    leading = Leading()
    assert leading.appended(11) == []
    assert leading.fetched(TWO, 11) == []
    assert leading.fetched(THREE, 11) == [Committed(11)]
    assert leading.leader.high_watermark == 11


def test_a_new_leader_does_not_commit_what_is_not_on_its_disk_yet() -> None:
    leading = Leading((ONE,), replicas=(ONE,), isr_min=1, high_watermark=4, own_end=7)
    assert leading.tick(1) == [Committed(7)]
    assert leading.leader.appended(10, Monotonic(2), own_end=10) == [Committed(10)]


def test_a_leader_that_nobody_follows_commits_at_once() -> None:
    leading = Leading((ONE,), replicas=(ONE,), isr_min=1)
    assert leading.appended(12) == [Committed(12)]


def test_what_is_not_synced_does_not_count() -> None:
    leading = Leading((ONE,), replicas=(ONE,), isr_min=1)
    assert leading.leader.appended(12, Monotonic(1), own_end=10) == []
    assert leading.leader.appended(12, Monotonic(2), own_end=12) == [Committed(12)]


def test_below_the_minimum_nothing_is_committed_and_nothing_accepted() -> None:
    leading = Leading((ONE,))
    assert leading.leader.is_under_min_isr
    assert leading.appended(11) == []
    with pytest.raises(Refusal) as refused:
        leading.leader.check_enough_replicas()
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_the_minimum_is_never_more_than_there_are_replicas() -> None:
    leading = Leading((ONE,), replicas=(ONE,), isr_min=2)
    leading.leader.check_enough_replicas()
    assert leading.appended(11) == [Committed(11)]


def test_a_slow_follower_leaves_the_isr() -> None:
    leading = Leading()
    leading.fetched(TWO, 10)
    leading.fetched(THREE, 10)
    leading.appended(11)
    leading.fetched(TWO, 11, now=20)
    assert leading.tick(31) == []
    assert leading.tick(32) == [proposal((ONE, -1), (TWO, 20))]
    assert leading.tick(99) == []  # One question at a time.
    assert leading.leader.high_watermark == 10  # Until it is decided, 3 is still waited for.
    decided = Assignment(5, 8, ALL, (ONE, TWO))
    pending = leading.leader.pending
    assert pending is not None
    assert leading.leader.isr_decided(pending, decided, Monotonic(40)) == []
    assert leading.leader.assigned(decided, 11, Monotonic(41)) == [Committed(11)]


def test_a_smaller_isr_counts_under_the_minimum_that_was_set_before_it() -> None:
    """The answer may come before the metadata log, which tells of a minimum that was raised."""
    leading = Leading((ONE, TWO), isr_min=1)
    leading.appended(11)
    (asked,) = leading.tick(99)
    assert isinstance(asked, ProposeIsr)
    decided = Assignment(5, 8, ALL, (ONE,))
    assert leading.leader.isr_decided(asked, decided, Monotonic(100)) == []
    assert leading.leader.high_watermark == 10
    assert leading.tick(101) == []  # It is still asked for.
    leading.leader.isr_min = 2
    assert leading.leader.assigned(decided, 11, Monotonic(102)) == []
    assert leading.leader.high_watermark == 10


def test_a_follower_without_new_records_to_fetch_stays() -> None:
    leading = Leading()
    leading.fetched(TWO, 10)
    leading.fetched(THREE, 10)
    assert leading.tick(10_000) == []


def test_a_record_after_a_long_silence_makes_nobody_late() -> None:
    leading = Leading()
    leading.fetched(TWO, 10)
    leading.fetched(THREE, 10)
    leading.appended(11, now=5_000)
    assert leading.tick(5_001) == []
    assert leading.tick(5_031) == [proposal((ONE, -1))]


def test_a_follower_that_has_all_joins_the_isr() -> None:
    leading = Leading((ONE, TWO))
    leading.fetched(TWO, 10)
    assert leading.fetched(THREE, 9) == []
    assert leading.fetched(THREE, 10) == [proposal((ONE, -1), (TWO, 20), (THREE, 30))]


def test_it_does_not_join_below_where_the_leaders_epoch_began() -> None:
    leading = Leading((ONE, TWO), high_watermark=3)
    assert leading.fetched(THREE, 9) == []
    assert not leading.leader.is_high_watermark_known
    assert leading.fetched(THREE, 10) != []


def test_a_broker_that_is_fenced_or_of_another_incarnation_does_not_join() -> None:
    leading = Leading((ONE, TWO))
    assert leading.fetched(THREE, 10, epoch=29) == []
    leading.eligible.clear()
    assert leading.fetched(THREE, 10) == []


def test_whoever_may_be_in_the_isr_already_is_waited_for() -> None:
    leading = Leading((ONE, TWO))
    leading.fetched(TWO, 10)
    leading.fetched(THREE, 10)  # Asked for; the controller may have let it in.
    assert leading.appended(11) == []
    assert leading.fetched(TWO, 11) == []
    assert leading.tick(500) == []
    assert leading.fetched(THREE, 11) == [Committed(11)]


def test_one_that_has_all_but_may_not_join_is_not_waited_for() -> None:
    leading = Leading((ONE, TWO))
    leading.eligible.discard((THREE, 30))
    leading.fetched(THREE, 10)
    leading.appended(11)
    assert leading.fetched(TWO, 11) == [Committed(11)]


def test_one_that_left_the_isr_is_not_waited_for_before_it_fetches_again() -> None:
    """The controller hears it again at once, but its own connections may take a while."""
    leading = Leading()
    leading.fetched(THREE, 10)
    leading.eligible.discard((THREE, 30))  # Fenced, and so out of the ISR.
    leading.leader.assigned(Assignment(5, 8, ALL, (ONE, TWO)), 10, Monotonic(2))
    leading.appended(11, now=3)
    assert leading.fetched(TWO, 11, now=3) == [Committed(11)]
    leading.eligible.add((THREE, 30))  # It is back, long before it could be called slow.
    leading.appended(12, now=4)
    assert leading.fetched(TWO, 12, now=4) == [Committed(12)]


def test_one_that_comes_back_is_waited_for_as_soon_as_it_has_caught_up() -> None:
    leading = Leading()
    leading.leader.assigned(Assignment(5, 8, ALL, (ONE, TWO)), 10, Monotonic(2))
    (asked,) = leading.fetched(THREE, 10, now=3)
    assert isinstance(asked, ProposeIsr)
    leading.leader.isr_refused(asked, ErrorCode.INELIGIBLE_REPLICA)
    leading.appended(11, now=4)
    assert Committed(11) not in leading.fetched(TWO, 11, now=4)
    assert Committed(11) in leading.fetched(THREE, 11, now=5)


def test_a_refused_proposal_is_given_up_repeated_or_left_to_the_metadata_log() -> None:
    for code, is_pending, repeated in (
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, True, False),
        (ErrorCode.NOT_CONTROLLER, True, True),
    ):
        leading = Leading((ONE, TWO))
        (asked,) = leading.fetched(THREE, 10)
        assert isinstance(asked, ProposeIsr)
        effects = leading.leader.isr_refused(asked, code)
        assert effects == ([asked] if repeated else [])
        assert (leading.leader.pending is asked) == is_pending


def test_who_caught_up_while_another_was_asked_for_is_proposed_next() -> None:
    leading = Leading((ONE,), isr_min=1)
    (asked,) = leading.fetched(TWO, 10)
    assert asked == proposal((ONE, -1), (TWO, 20))
    assert leading.fetched(THREE, 10) == []
    assert isinstance(asked, ProposeIsr)
    decided = Assignment(5, 8, ALL, (ONE, TWO))
    effects = leading.leader.isr_decided(asked, decided, Monotonic(2))
    assert effects == [ProposeIsr(((ONE, -1), (TWO, 20), (THREE, 30)), 5, 8)]


def test_who_is_unfenced_after_it_caught_up_joins_then() -> None:
    leading = Leading((ONE, TWO))
    leading.eligible.discard((THREE, 30))
    assert leading.fetched(THREE, 10) == []
    leading.eligible.add((THREE, 30))
    assert leading.leader.reconsider(Monotonic(2)) != []


def test_an_answer_that_comes_after_the_metadata_log_changes_nothing() -> None:
    leading = Leading((ONE, TWO))
    (asked,) = leading.fetched(THREE, 10)
    assert isinstance(asked, ProposeIsr)
    newer = Assignment(5, 9, ALL, (ONE, THREE))
    leading.leader.assigned(newer, 10, Monotonic(2))
    stale = Assignment(5, 8, ALL, ALL)
    assert leading.leader.isr_decided(asked, stale, Monotonic(3)) == []
    assert leading.leader.isr == (ONE, THREE)
    assert leading.leader.isr_refused(asked, ErrorCode.NOT_CONTROLLER) == []
    assert leading.leader.assigned(stale, 10, Monotonic(4)) == []


def test_a_new_epoch_begins_where_the_log_ends() -> None:
    leading = Leading()
    leading.appended(20)
    leading.leader.assigned(Assignment(6, 8, ALL, ALL), 20, Monotonic(5))
    assert leading.leader.epoch_start == 20
    assert not leading.leader.is_high_watermark_known


def test_a_replica_that_is_moved_in_is_followed_from_then_on() -> None:
    leading = Leading()
    with pytest.raises(Refusal) as refused:
        leading.fetched(NodeId(4), 10, epoch=40)
    assert refused.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH
    leading.eligible.add((NodeId(4), 40))
    replicas = (*ALL, NodeId(4))
    leading.leader.assigned(Assignment(5, 8, replicas, ALL), 10, Monotonic(5))
    (asked,) = leading.fetched(NodeId(4), 10, epoch=40)
    assert isinstance(asked, ProposeIsr)
    assert leading.leader.end_of(NodeId(4)) == 10
    assert leading.leader.end_of(ONE) == 10
