import pytest

from ottla.model.types import TopicPartition
from ottla.simulation.history.group_history import (
    DELAYED_NS,
    DELETION,
    LATE_NS,
    NO_OFFSET,
    Fate,
    GroupHistory,
    Standing,
    Write,
)
from ottla.simulation.history.history import Violation
from ottla.simulation.world.loop import MILLISECOND

PLACE = TopicPartition("topic", 0)
SESSION_MS, REBALANCE_MS = 1_000, 2_000


class World:
    """A history, and a clock that the test moves."""

    def __init__(self) -> None:
        self.ms = 0
        self.history = GroupHistory(lambda: self.ms * MILLISECOND)

    def member(self, name: str, instance: str | None = None) -> Standing:
        standing = Standing(name, "group", instance, SESSION_MS, REBALANCE_MS, self.history.now_ns)
        self.history.joins(standing)
        if instance is not None:
            self.history.takes_over(standing)
        return standing

    def give(self, standing: Standing, sent_ms: int | None = None) -> None:
        sent = (self.ms if sent_ms is None else sent_ms) * MILLISECOND
        standing.heard(sent)
        self.history.given(standing, [PLACE], sent)

    def sync(self, standing: Standing, generation: int, sent_ms: int | None = None) -> None:
        sent = (self.ms if sent_ms is None else sent_ms) * MILLISECOND
        self.history.synced(standing, generation, [PLACE], sent)

    def commit(self, offset: int, until_ms: int | None = None) -> Write:
        """A commit that takes until then, or is never answered."""
        write = self.history.writing("group", PLACE, offset, self.history.new_token())
        if until_ms is not None:
            self.ms = until_ms
            self.history.written("group", PLACE, write)
        return write

    def fetch(self, write: Write | None, began_ms: int | None = None) -> None:
        began = (self.ms if began_ms is None else began_ms) * MILLISECOND
        offset, token = (write.offset, write.token) if write else (NO_OFFSET, "")
        self.history.fetched("group", PLACE, offset, token, began)


@pytest.fixture
def world() -> World:
    return World()


def test_a_partition_is_given_on_when_its_owner_gave_it_up(world: World) -> None:
    first, second = world.member("first"), world.member("second")
    world.give(first)
    first.owned.discard(PLACE)
    world.ms = 10
    world.give(second)
    assert second.owned == {PLACE}


def test_a_partition_that_is_owned_must_not_be_given_to_another(world: World) -> None:
    world.give(world.member("first"))
    world.ms = 900
    with pytest.raises(Violation, match=r"G1: .* second, but first has not given it up"):
        world.give(world.member("second"))


def test_who_was_silent_for_its_session_may_have_lost_its_partitions(world: World) -> None:
    world.give(world.member("first"))
    world.ms = SESSION_MS
    world.give(world.member("second"))


def test_who_should_have_given_up_something_long_ago_may_have_lost_it(world: World) -> None:
    first = world.member("first")
    world.give(first)
    world.ms = REBALANCE_MS
    first.heard((world.ms - 1) * MILLISECOND, is_settled=False)
    world.give(world.member("second"))


def test_an_instance_takes_over_from_itself(world: World) -> None:
    world.give(world.member("first", "instance"))
    world.give(world.member("second", "instance"))


def test_an_older_member_takes_its_instance_back(world: World) -> None:
    first, second = world.member("first", "instance"), world.member("second", "instance")
    world.give(second)
    world.ms = 10
    world.history.takes_over(first)
    world.give(first)
    world.history.ends(first)
    world.give(world.member("third"))


def test_a_member_that_was_replaced_is_given_nothing_that_it_asked_for_afterwards(
    world: World,
) -> None:
    first, second = world.member("first", "instance"), world.member("second", "instance")
    world.ms = 10
    world.give(second)
    world.ms = 20
    world.give(first, sent_ms=5)  # The answer was on its way.
    with pytest.raises(Violation, match=r"G1: .* first, but second has not given it up"):
        world.give(first)


def test_who_was_replaced_by_its_own_instance_is_fenced_for_all(world: World) -> None:
    world.give(world.member("first", "instance"))
    world.member("second", "instance")
    world.give(world.member("third"))


def test_an_answer_that_took_longer_than_a_session_gives_nothing(world: World) -> None:
    world.ms = 5_000
    world.give(world.member("first"))
    world.give(world.member("second"), sent_ms=3_000)


def test_the_dead_own_nothing(world: World) -> None:
    first = world.member("first")
    world.give(first)
    world.history.ends(first)
    world.give(world.member("second"))


def test_a_generation_has_one_owner_of_a_partition(world: World) -> None:
    first = world.member("first")
    world.sync(first, 3)
    first.is_out()
    with pytest.raises(Violation, match=r"G1: .* first and to second in generation 3"):
        world.sync(world.member("second"), 3)


def test_a_generation_that_is_over_does_not_come_back(world: World) -> None:
    first = world.member("first")
    world.sync(first, 3)
    world.ms = 10
    with pytest.raises(Violation, match="G3: first stays in generation 2"):
        world.history.check_generation(first, 2, world.ms * MILLISECOND, "stays in")
    world.history.check_generation(first, 2, 0, "stays in")  # Sent before the new one began.


def test_a_group_that_was_deleted_counts_anew(world: World) -> None:
    first = world.member("first")
    world.sync(first, 3)
    world.ms = 10
    world.history.forget_group("group")
    world.sync(first, 1)


def test_what_was_committed_last_is_found(world: World) -> None:
    world.fetch(None)
    world.commit(5, until_ms=10)
    world.ms = 20
    last = world.commit(7, until_ms=30)
    world.ms = 40
    world.fetch(last)
    assert (world.history.commits, world.history.fetches) == (2, 2)


def test_what_was_replaced_must_not_come_back(world: World) -> None:
    first = world.commit(5, until_ms=10)
    world.ms = 20
    world.commit(7, until_ms=30)
    world.ms = 40
    world.fetch(first, began_ms=25)  # Then the second was still under way.
    with pytest.raises(Violation, match=r"G2: .* a later commit"):
        world.fetch(first)


def test_a_commit_that_nobody_answered_may_count_or_not(world: World) -> None:
    first = world.commit(5, until_ms=10)
    unknown = world.commit(7)
    world.history.given_up(unknown)
    world.ms = 20
    world.fetch(first)
    world.fetch(unknown)
    world.ms = 30 + LATE_NS // MILLISECOND
    world.commit(9, until_ms=world.ms + 1)
    world.ms += 10
    with pytest.raises(Violation, match="G2"):
        world.fetch(unknown)


def test_an_offset_does_not_vanish(world: World) -> None:
    world.commit(5, until_ms=10)
    world.ms = 20
    with pytest.raises(Violation, match="G2: group has no offset"):
        world.fetch(None)


def test_an_offset_may_be_gone_when_it_was_deleted_or_expired(world: World) -> None:
    world.commit(5, until_ms=10)
    world.ms = 20
    deletion = world.history.writing("group", PLACE, NO_OFFSET, DELETION)
    assert world.history.is_deleting("group", PLACE)
    world.fetch(None)
    world.history.refused(deletion)
    assert not world.history.is_deleting("group", PLACE)
    world.history.look = lambda: world.history.expired("group", PLACE)
    world.fetch(None)


def test_what_nobody_committed_is_not_found(world: World) -> None:
    with pytest.raises(Violation, match="nobody committed"):
        world.fetch(Write("token", 5, 0))


def test_what_was_refused_is_not_found(world: World) -> None:
    write = world.commit(5)
    world.history.refused(write)
    assert write.fate is Fate.REFUSED
    with pytest.raises(Violation, match=r"G3: .* was refused"):
        world.fetch(write)


def test_only_the_last_owner_commits(world: World) -> None:
    first, second = world.member("first"), world.member("second")
    world.give(first)
    first.is_out()
    world.ms = 10
    world.give(second)
    world.ms = 20
    write = world.commit(5, until_ms=30)
    world.history.committed_by(second, PLACE, write)
    with pytest.raises(Violation, match="G3: a commit of first"):
        world.history.committed_by(first, PLACE, write)


def test_nobody_else_changes_the_offsets_of_a_group_with_members(world: World) -> None:
    first = world.member("first")
    world.give(first)
    world.ms = 10
    write = world.commit(5, until_ms=20)
    with pytest.raises(Violation, match="G3: an outsider"):
        world.history.done_by_outsider("group", write)
    world.ms = 5_000
    world.history.done_by_outsider("group", write)


def test_an_outsider_may_come_before_a_member_that_has_no_answer_yet(world: World) -> None:
    """Both requests wait at a coordinator that is still loading its log."""
    first = world.member("first")
    world.ms = 10
    write = world.commit(5, until_ms=20)
    world.give(first, sent_ms=5)
    world.history.done_by_outsider("group", write)


def test_no_record_beyond_what_is_committed_is_handled(world: World) -> None:
    world.history.committed_end = lambda _: 3
    world.history.handled("group", PLACE, 0, 3)
    with pytest.raises(Violation, match="I8: group reads topic-0 up to 4, committed up to 3"):
        world.history.handled("group", PLACE, 3, 4)


def test_no_record_is_left_out(world: World) -> None:
    world.history.handled("group", PLACE, 0, 3)
    world.history.handled("group", PLACE, 1, 4)
    with pytest.raises(Violation, match="goes on at 5"):
        world.history.handled("group", PLACE, 5, 6)


# A deposed coordinator that does not know of its successor.


def deposed_answers(world: World, at_ms: int) -> None:
    world.history.deposed_ns = at_ms * MILLISECOND


def test_only_while_a_deposed_coordinator_answers_an_offset_may_be_old(world: World) -> None:
    old = world.commit(1, until_ms=10)
    world.ms = 15
    world.commit(2, until_ms=20)
    world.ms = 40
    deposed_answers(world, 30)
    world.fetch(old, began_ms=25)
    world.fetch(None, began_ms=25)
    for stale in (old, None):
        with pytest.raises(Violation, match="G2"):
            world.fetch(stale, began_ms=35)


def test_a_member_that_heard_of_a_deposed_coordinator_may_own_what_was_given_on(
    world: World,
) -> None:
    first, second, third = (world.member(name) for name in ("first", "second", "third"))
    world.give(first)
    deposed_answers(world, 0)
    world.ms = 10
    world.give(second)
    first.owned.clear()
    world.ms = 20
    with pytest.raises(Violation, match="G1"):
        world.give(third)


def test_a_heartbeat_counts_in_a_generation_that_only_the_successor_knows_to_be_over(
    world: World,
) -> None:
    first, second = world.member("first"), world.member("second")
    world.sync(first, 1)
    first.owned.clear()
    world.ms = 10
    world.sync(second, 2)
    deposed_answers(world, 30)
    world.history.check_generation(first, 1, 25 * MILLISECOND, "stays in")
    with pytest.raises(Violation, match="G3"):
        world.history.check_generation(first, 1, 35 * MILLISECOND, "stays in")


def test_a_commit_counts_although_a_deposed_coordinator_gave_the_partition_on(
    world: World,
) -> None:
    first, second = world.member("first"), world.member("second")
    world.give(first)
    world.ms = 10
    deposed_answers(world, 10)
    world.give(second, sent_ms=5)
    world.ms = 20
    world.history.committed_by(first, PLACE, world.commit(1))
    second.owned.clear()
    first.owned.clear()
    world.give(second)
    world.ms = 30
    with pytest.raises(Violation, match="G3"):
        world.history.committed_by(first, PLACE, world.commit(1))


def test_an_outsider_may_write_where_a_member_heard_of_a_deposed_coordinator(
    world: World,
) -> None:
    world.give(world.member("first"))
    world.ms = 10
    write = world.commit(1)
    with pytest.raises(Violation, match="G3: an outsider"):
        world.history.done_by_outsider("group", write)
    deposed_answers(world, 0)
    world.history.done_by_outsider("group", write)


def test_a_request_that_is_given_up_takes_effect_later_where_there_are_delays() -> None:
    for is_delayed, late_ns in ((False, LATE_NS), (True, DELAYED_NS)):
        history = GroupHistory(lambda: 0, is_delayed=is_delayed)
        write = history.writing("group", PLACE, 1, "t")
        history.given_up(write)
        assert write.ended_ns == late_ns
