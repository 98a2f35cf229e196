"""ConsumerGroupHeartbeat: joining, sharing, leaving, coming back, being late."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.groups.settings import GroupSettings
from ottla.model.errors import ErrorCode
from tests.unit.groups.consuming import Consumer, ConsumerWorld, settle
from tests.unit.groups.driving import GROUP


def test_the_first_member_owns_all() -> None:
    world = ConsumerWorld(t=3)
    consumer = Consumer(world, "a")
    reply = consumer.beat()
    assert (reply.member_id, reply.member_epoch, reply.heartbeat_interval_ms) == ("a", 1, 5000)
    assert consumer.owned == {("t", 0), ("t", 1), ("t", 2)}
    assert consumer.beat(topic_partitions=None).assignment is None, "nothing changed"


def test_a_newcomer_waits_until_the_other_has_given_up() -> None:
    world = ConsumerWorld(t=4)
    first, second = Consumer(world, "a"), Consumer(world, "b")
    settle(first)
    second.beat()
    assert second.owned == frozenset()
    first.beat()
    assert len(first.owned) == 2
    second.beat()
    assert second.owned == frozenset(), "it was asked to give up, but has not said that it did"
    first.beat()
    second.beat()
    assert first.owned | second.owned == {("t", index) for index in range(4)}
    assert world.machine.consumers.by_id[GROUP].state == "Stable"


def test_what_one_leaves_the_others_get() -> None:
    world = ConsumerWorld(t=4)
    both = first, second = Consumer(world, "a"), Consumer(world, "b")
    settle(*both)
    assert second.leave().member_epoch == -1
    settle(first)
    assert len(first.owned) == 4
    assert world.reply(second.request(member_epoch=5), 1).code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_out_after_its_session() -> None:
    world = ConsumerWorld(t=4)
    both = first, second = Consumer(world, "a"), Consumer(world, "b")
    settle(*both)
    world.pass_time(40_000)
    first.beat()
    world.pass_time(5_000)
    settle(first)
    assert len(first.owned) == 4
    second.beat()
    assert second.error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_in_time_is_out() -> None:
    world = ConsumerWorld(t=4)
    first, second = Consumer(world, "a"), Consumer(world, "b")
    settle(first)
    second.beat()
    stubborn = first.owned
    for _ in range(3):
        first.beat()
        first.owned = stubborn
        second.beat()
        world.pass_time(10_000)
    settle(second)
    assert len(second.owned) == 4
    first.beat()
    assert first.error == ErrorCode.UNKNOWN_MEMBER_ID


def test_stale_and_future_epochs_are_fenced_and_change_nothing() -> None:
    world = ConsumerWorld(t=4)
    consumer = Consumer(world, "a")
    settle(consumer)
    before = list(world.log)
    for epoch in (consumer.epoch + 1, 99):
        code = world.reply(consumer.request(member_epoch=epoch), 1).code
        assert code == ErrorCode.FENCED_MEMBER_EPOCH
    assert world.log == before


def test_an_answer_that_was_lost_is_given_again() -> None:
    world = ConsumerWorld(t=4)
    first, second = Consumer(world, "a"), Consumer(world, "b")
    settle(first)
    epoch, owned = first.epoch, first.owned
    second.beat()
    first.beat()
    first.beat()
    assert first.epoch == epoch + 1
    again = world.reply(first.request(member_epoch=epoch), 1)
    assert again.member_epoch == first.epoch
    first.owned = owned
    assert world.reply(first.request(member_epoch=epoch), 1).code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_joins_again_keeps_its_place() -> None:
    world = ConsumerWorld(t=4)
    consumer = Consumer(world, "a")
    settle(consumer)
    consumer.epoch = 0
    consumer.beat()
    assert len(consumer.owned) == 4


def test_a_static_member_comes_back_to_what_it_had() -> None:
    world = ConsumerWorld(t=4)
    first = Consumer(world, "a", instance_id="one")
    other = Consumer(world, "b", instance_id="two")
    settle(first, other)
    kept, epoch = first.owned, world.machine.consumers.by_id[GROUP].epoch
    rival = Consumer(world, "c", instance_id="one")
    rival.beat()
    assert rival.error == ErrorCode.UNRELEASED_INSTANCE_ID
    first.leave(-2)
    world.reload()
    back = Consumer(world, "d", instance_id="one")
    back.beat()
    assert back.owned == kept
    assert world.machine.consumers.by_id[GROUP].epoch == epoch, "nobody else is disturbed"
    assert world.reply(first.request(member_epoch=1), 1).code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_stays_away_is_out() -> None:
    world = ConsumerWorld(t=4)
    first = Consumer(world, "a", instance_id="one")
    settle(first)
    first.leave(-2)
    world.pass_time(45_000)
    assert world.machine.consumers.by_id[GROUP].members == {}


def test_a_topic_that_grows_is_shared_anew() -> None:
    world = ConsumerWorld(t=1)
    consumer = Consumer(world, "a")
    settle(consumer)
    world.change_topics(t=3)
    settle(consumer)
    assert len(consumer.owned) == 3


def test_a_full_group_takes_nobody_else() -> None:
    world = ConsumerWorld(GroupSettings(consumer_size_max=1), t=1)
    settle(Consumer(world, "a"))
    second = Consumer(world, "b")
    second.beat()
    assert second.error == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_most_members_choose_the_assignor() -> None:
    world = ConsumerWorld(t=2, u=2)
    fields = {"subscribed_topic_names": ["t", "u"], "server_assignor": "range"}
    both = Consumer(world, "a", **fields), Consumer(world, "b", **fields)
    settle(*both)
    assert both[0].owned == {("t", 0), ("u", 0)}
    assert both[1].owned == {("t", 1), ("u", 1)}


def test_an_old_client_is_given_its_member_id() -> None:
    world = ConsumerWorld()
    reply = world.reply(Consumer(world, "").request(), 0)
    assert reply.member_id == "1"


class Reconciliation(RuleBasedStateMachine):
    """Members that come, go, stall and lose answers: no partition has two owners, ever."""

    def __init__(self) -> None:
        super().__init__()
        self.world = ConsumerWorld(t=4, u=3)
        self.consumers: dict[str, Consumer] = {}
        self.number = 0

    @rule(topics=st.sampled_from([["t"], ["u"], ["t", "u"]]))
    def come(self, topics: list[str]) -> None:
        if len(self.consumers) < 4:
            self.number += 1
            name = f"m{self.number}"
            self.consumers[name] = Consumer(self.world, name, subscribed_topic_names=topics)

    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        if self.consumers:
            self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))].beat()

    @rule(data=st.data())
    def lose_an_answer(self, data: st.DataObject) -> None:
        if self.consumers:
            consumer = self.consumers[data.draw(st.sampled_from(sorted(self.consumers)))]
            consumer.lose_an_answer()

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.consumers:
            consumer = self.consumers.pop(data.draw(st.sampled_from(sorted(self.consumers))))
            consumer.leave()

    @rule(size=st.integers(1, 6))
    def grow(self, size: int) -> None:
        self.world.change_topics(t=max(size, self.world.topics.sizes["t"]))

    @rule()
    def lose_the_coordinator(self) -> None:
        self.world.reload()

    @rule()
    def everyone_settles(self) -> None:
        settle(*self.consumers.values())
        for name in ("t", "u"):
            wanted = {
                (name, index)
                for consumer in self.consumers.values()
                if name in consumer.fields["subscribed_topic_names"]
                for index in range(self.world.topics.sizes[name])
            }
            owned = {p for c in self.consumers.values() for p in c.owned if p[0] == name}
            assert owned == wanted

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owned = [p for consumer in self.consumers.values() for p in consumer.owned]
        assert len(owned) == len(set(owned))


TestReconciliation = Reconciliation.TestCase
TestReconciliation.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_refused_return_of_a_static_member_leaves_the_session_of_its_place_as_it_was() -> None:
    world = ConsumerWorld(t=4)
    first = Consumer(world, "first", instance_id="one")
    settle(first)
    first.leave(-2)
    back = Consumer(world, "back", instance_id="one", subscribed_topic_regex="(")
    back.beat()
    assert back.error == ErrorCode.INVALID_REGULAR_EXPRESSION
    world.pass_time(world.times.session_timeout_ms)
    assert world.machine.consumers.by_id[GROUP].members == {}
