"""A member gives up first, then takes; what others still own it gets later."""

from ottla.groups.consumer.group import ConsumerMember, MemberState
from ottla.groups.consumer.reconciliation import Goal, as_record, is_part_of, reconciled
from ottla.groups.consumer.requests import new_metadata
from ottla.protocol.messages.consumer_group_heartbeat import TopicPartitions

T = b"t" * 16


def member(epoch: int, *assigned: int, state: MemberState = MemberState.STABLE) -> ConsumerMember:
    owned = {T: dict.fromkeys(assigned, epoch)} if assigned else {}
    return ConsumerMember("a", new_metadata(), epoch, epoch - 1, state, owned)


def goal(epoch: int, *target: int, others: tuple[int, ...] = ()) -> Goal:
    return Goal(epoch, {T: frozenset(target)}, {(T, index): "b" for index in others}, {T})


def owning(*indexes: int) -> list[TopicPartitions]:
    return [TopicPartitions(T, list(indexes))]


def test_a_stable_member_of_the_last_epoch_stays_as_it_is() -> None:
    assert reconciled(member(3, 0, 1), goal(3, 0, 1), None) is None


def test_what_is_free_is_taken_at_once() -> None:
    value = reconciled(member(1, 0), goal(2, 0, 1), None)
    assert value is not None
    assert (value.member_epoch, value.previous_member_epoch, value.state) == (2, 1, 0)
    assert value.assigned_partitions == as_record({T: {0: 1, 1: 2}})


def test_what_must_go_is_given_up_before_anything_is_taken() -> None:
    value = reconciled(member(1, 0, 1), goal(2, 1, 2), owning(0, 1))
    assert value is not None
    assert (value.member_epoch, value.state) == (1, MemberState.UNREVOKED_PARTITIONS)
    assert value.assigned_partitions == as_record({T: {1: 1}})
    assert value.partitions_pending_revocation == as_record({T: {0: 1}})


def test_a_member_that_still_owns_what_must_go_is_waited_for() -> None:
    waiting = member(1, 1, state=MemberState.UNREVOKED_PARTITIONS)
    waiting.revoking = {T: {0: 1}}
    assert reconciled(waiting, goal(2, 1, 2), owning(0, 1)) is None
    assert reconciled(waiting, goal(2, 1, 2), None) is None
    value = reconciled(waiting, goal(2, 1, 2), owning(1))
    assert value is not None
    assert (value.member_epoch, value.state) == (2, MemberState.STABLE)
    assert value.assigned_partitions == as_record({T: {1: 1, 2: 2}})


def test_what_others_own_is_waited_for() -> None:
    value = reconciled(member(1), goal(2, 0, 1), None)
    assert value is not None
    assert value.state == MemberState.STABLE
    value = reconciled(member(1), goal(2, 0, 1, others=(1,)), None)
    assert value is not None
    assert (value.member_epoch, value.state) == (2, MemberState.UNRELEASED_PARTITIONS)
    assert value.assigned_partitions == as_record({T: {0: 2}})


def test_a_waiting_member_is_told_only_when_something_is_free() -> None:
    waiting = member(2, 0, state=MemberState.UNRELEASED_PARTITIONS)
    assert reconciled(waiting, goal(2, 0, 1, others=(1,)), None) is None
    value = reconciled(waiting, goal(2, 0, 1), None)
    assert value is not None
    assert value.state == MemberState.STABLE


def test_what_is_not_read_any_more_is_given_up_without_a_new_target() -> None:
    old = goal(3, 0, 1)._replace(topics=set(), is_subscription_new=True)
    value = reconciled(member(3, 0, 1), old, owning(0, 1))
    assert value is not None
    assert (value.member_epoch, value.state) == (3, MemberState.UNREVOKED_PARTITIONS)
    assert value.partitions_pending_revocation == as_record({T: {0: 3, 1: 3}})
    gone = reconciled(member(3, 0, 1), old, owning())
    assert gone is not None
    assert (gone.state, gone.assigned_partitions) == (MemberState.STABLE, [])
    assert reconciled(member(3, 0), goal(3, 0)._replace(is_subscription_new=True), None) is None


def test_an_old_target_gives_nothing_of_a_topic_that_is_not_read() -> None:
    value = reconciled(member(1), goal(2, 0, 1)._replace(topics=set()), None)
    assert value is not None
    assert (value.member_epoch, value.assigned_partitions) == (2, [])


def test_whoever_takes_a_place_has_what_was_owned_there() -> None:
    value = reconciled(member(0), goal(2, 0, others=(0,))._replace(replaced="b"), [])
    assert value is not None
    assert value.assigned_partitions == as_record({T: {0: 2}})


def test_only_what_was_given_counts_as_owned() -> None:
    assert is_part_of(owning(0), {T: {0: 1, 1: 1}})
    assert not is_part_of(owning(0, 2), {T: {0: 1, 1: 1}})
    assert not is_part_of(None, {})
