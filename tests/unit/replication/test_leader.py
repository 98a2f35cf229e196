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


def test_a_record_is_committed_when_all_of_the_isr_holds_it() -> None:
    leading = Leading()
    assert leading.appended(11) == []
    assert leading.fetched(TWO, 11) == []
    assert leading.fetched(THREE, 11) == [Committed(11)]
    assert leading.leader.high_watermark == 11


def test_new_leader_does_not_commit_its_unsynced_records() -> None:
    leading = Leading((ONE,), replicas=(ONE,), isr_min=1, high_watermark=4, own_end=7)
    assert leading.tick(1) == [Committed(7)]
    assert leading.leader.appended(10, Monotonic(2), own_end=10) == [Committed(10)]


def test_leader_without_followers_commits_at_once() -> None:
    leading = Leading((ONE,), replicas=(ONE,), isr_min=1)
    assert leading.appended(12) == [Committed(12)]


def test_unsynced_records_of_the_leader_do_not_count() -> None:
    leading = Leading((ONE,), replicas=(ONE,), isr_min=1)
    assert leading.leader.appended(12, Monotonic(1), own_end=10) == []
    assert leading.leader.appended(12, Monotonic(2), own_end=12) == [Committed(12)]


def test_below_min_isr_nothing_is_committed_or_accepted() -> None:
    leading = Leading((ONE,))
    assert leading.leader.is_under_min_isr
    assert leading.appended(11) == []
    with pytest.raises(Refusal) as refused:
        leading.leader.check_enough_replicas()
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_min_isr_is_capped_by_the_number_of_replicas() -> None:
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
    assert leading.tick(99) == []  # One proposal at a time.
    assert leading.leader.high_watermark == 10  # Until it is decided, 3 still counts.
    decided = Assignment(5, 8, ALL, (ONE, TWO))
    pending = leading.leader.pending
    assert pending is not None
    assert leading.leader.isr_decided(pending, decided, Monotonic(40)) == []
    assert leading.leader.assigned(decided, 11, Monotonic(41)) == [Committed(11)]


def test_smaller_isr_takes_effect_only_with_the_metadata_log() -> None:
    """The response may come before the metadata log, which brings a raised minimum."""
    leading = Leading((ONE, TWO), isr_min=1)
    leading.appended(11)
    (asked,) = leading.tick(99)
    assert isinstance(asked, ProposeIsr)
    decided = Assignment(5, 8, ALL, (ONE,))
    assert leading.leader.isr_decided(asked, decided, Monotonic(100)) == []
    assert leading.leader.high_watermark == 10
    assert leading.tick(101) == []  # The proposal is still pending.
    leading.leader.isr_min = 2
    assert leading.leader.assigned(decided, 11, Monotonic(102)) == []
    assert leading.leader.high_watermark == 10


def test_caught_up_follower_stays_in_the_isr_without_new_records() -> None:
    leading = Leading()
    leading.fetched(TWO, 10)
    leading.fetched(THREE, 10)
    assert leading.tick(10_000) == []


def test_append_after_a_long_silence_makes_no_follower_lag() -> None:
    leading = Leading()
    leading.fetched(TWO, 10)
    leading.fetched(THREE, 10)
    leading.appended(11, now=5_000)
    assert leading.tick(5_001) == []
    assert leading.tick(5_031) == [proposal((ONE, -1))]


def test_caught_up_follower_joins_the_isr() -> None:
    leading = Leading((ONE, TWO))
    leading.fetched(TWO, 10)
    assert leading.fetched(THREE, 9) == []
    assert leading.fetched(THREE, 10) == [proposal((ONE, -1), (TWO, 20), (THREE, 30))]


def test_follower_below_the_epoch_start_does_not_join_the_isr() -> None:
    leading = Leading((ONE, TWO), high_watermark=3)
    assert leading.fetched(THREE, 9) == []
    assert not leading.leader.is_high_watermark_known
    assert leading.fetched(THREE, 10) != []


def test_fenced_broker_or_other_incarnation_does_not_join_the_isr() -> None:
    leading = Leading((ONE, TWO))
    assert leading.fetched(THREE, 10, epoch=29) == []
    leading.eligible.clear()
    assert leading.fetched(THREE, 10) == []


def test_members_of_a_pending_proposal_hold_the_high_watermark() -> None:
    leading = Leading((ONE, TWO))
    leading.fetched(TWO, 10)
    leading.fetched(THREE, 10)  # Proposed; the controller may have accepted it.
    assert leading.appended(11) == []
    assert leading.fetched(TWO, 11) == []
    assert leading.tick(500) == []
    assert leading.fetched(THREE, 11) == [Committed(11)]


def test_ineligible_caught_up_replica_does_not_hold_the_high_watermark() -> None:
    leading = Leading((ONE, TWO))
    leading.eligible.discard((THREE, 30))
    leading.fetched(THREE, 10)
    leading.appended(11)
    assert leading.fetched(TWO, 11) == [Committed(11)]


def test_replica_that_left_the_isr_holds_the_high_watermark_only_after_a_fetch() -> None:
    """The controller gets its heartbeat at once, but its fetch connections may take a while."""
    leading = Leading()
    leading.fetched(THREE, 10)
    leading.eligible.discard((THREE, 30))  # Fenced, and so removed from the ISR.
    leading.leader.assigned(Assignment(5, 8, ALL, (ONE, TWO)), 10, Monotonic(2))
    leading.appended(11, now=3)
    assert leading.fetched(TWO, 11, now=3) == [Committed(11)]
    leading.eligible.add((THREE, 30))  # It returns long before it would count as lagging.
    leading.appended(12, now=4)
    assert leading.fetched(TWO, 12, now=4) == [Committed(12)]


def test_returning_replica_holds_the_high_watermark_once_caught_up() -> None:
    leading = Leading()
    leading.leader.assigned(Assignment(5, 8, ALL, (ONE, TWO)), 10, Monotonic(2))
    (asked,) = leading.fetched(THREE, 10, now=3)
    assert isinstance(asked, ProposeIsr)
    leading.leader.isr_refused(asked, ErrorCode.INELIGIBLE_REPLICA)
    leading.appended(11, now=4)
    assert Committed(11) not in leading.fetched(TWO, 11, now=4)
    assert Committed(11) in leading.fetched(THREE, 11, now=5)


def test_refused_proposal_is_dropped_repeated_or_left_to_the_metadata_log() -> None:
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


def test_replica_caught_up_during_a_proposal_is_in_the_next_one() -> None:
    leading = Leading((ONE,), isr_min=1)
    (asked,) = leading.fetched(TWO, 10)
    assert asked == proposal((ONE, -1), (TWO, 20))
    assert leading.fetched(THREE, 10) == []
    assert isinstance(asked, ProposeIsr)
    decided = Assignment(5, 8, ALL, (ONE, TWO))
    effects = leading.leader.isr_decided(asked, decided, Monotonic(2))
    assert effects == [ProposeIsr(((ONE, -1), (TWO, 20), (THREE, 30)), 5, 8)]


def test_caught_up_replica_joins_when_it_is_unfenced() -> None:
    leading = Leading((ONE, TWO))
    leading.eligible.discard((THREE, 30))
    assert leading.fetched(THREE, 10) == []
    leading.eligible.add((THREE, 30))
    assert leading.leader.reconsider(Monotonic(2)) != []


def test_alter_partition_response_after_the_metadata_log_changes_nothing() -> None:
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


def test_new_epoch_starts_at_the_log_end() -> None:
    leading = Leading()
    leading.appended(20)
    leading.leader.assigned(Assignment(6, 8, ALL, ALL), 20, Monotonic(5))
    assert leading.leader.epoch_start == 20
    assert not leading.leader.is_high_watermark_known


def test_added_replica_is_tracked() -> None:
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
