"""Targets are made for what the group reads, and not too often."""

import pytest

from ottla.groups.settings import ConsumerTimes, GroupSettings
from ottla.protocol.consumer_group_records import ConsumerGroupRegularExpressionKey
from tests.unit.groups.consuming import Consumer, ConsumerWorld, settle
from tests.unit.groups.driving import GROUP


@pytest.fixture
def world() -> ConsumerWorld:
    made = ConsumerWorld(t=4)
    made.times = ConsumerTimes(assignment_interval_ms=1000)
    return made


def test_the_first_target_is_made_at_once_and_the_next_after_the_interval(
    world: ConsumerWorld,
) -> None:
    first, second = Consumer(world, "a"), Consumer(world, "b")
    first.beat()
    assert len(first.owned) == 4
    world.clock.now_ms += 999
    second.beat()
    group = world.machine.consumers.by_id[GROUP]
    assert (group.epoch, group.target_epoch, second.epoch) == (2, 1, 1)
    assert group.state == "Assigning"
    world.clock.now_ms += 1
    second.beat()
    assert (group.epoch, group.target_epoch, second.epoch) == (2, 2, 2)
    settle(first, second)
    assert (len(first.owned), len(second.owned)) == (2, 2)


def test_many_changes_within_the_interval_are_one_target(world: ConsumerWorld) -> None:
    consumers = [Consumer(world, f"m{i}") for i in range(4)]
    for consumer in consumers:
        consumer.beat()
    world.clock.now_ms += 1000
    settle(*consumers)
    group = world.machine.consumers.by_id[GROUP]
    assert (group.epoch, group.target_epoch) == (4, 4)
    targets = [key for key, _ in world.log if type(key).__name__.endswith("AssignmentMetadataKey")]
    assert len(targets) == 2


def test_a_clock_that_was_set_back_does_not_stop_the_group(world: ConsumerWorld) -> None:
    first, second = Consumer(world, "a"), Consumer(world, "b")
    first.beat()
    world.clock.now_ms -= 500
    settle(first, second)
    assert len(second.owned) == 2


def test_a_member_that_drops_a_topic_gives_it_up_before_the_next_target() -> None:
    world = ConsumerWorld(t=2, u=2)
    world.times = ConsumerTimes(assignment_interval_ms=1000)
    consumer = Consumer(world, "a", subscribed_topic_names=["t", "u"])
    consumer.beat()
    assert len(consumer.owned) == 4
    consumer.beat(subscribed_topic_names=["t"])
    assert {topic for topic, _ in consumer.owned} == {"t"}
    assert world.machine.consumers.by_id[GROUP].target_epoch == 1


def test_an_assignor_that_is_no_longer_configured_counts_for_nothing() -> None:
    world = ConsumerWorld(t=2)
    settle(Consumer(world, "a", server_assignor="range"))
    world.settings = GroupSettings(consumer_assignors=("uniform",))
    world.reload()
    world.change_topics(t=4)
    consumer = Consumer(world, "b")
    consumer.beat()
    assert consumer.error == 0


def test_an_expression_that_nobody_uses_any_more_is_forgotten() -> None:
    world = ConsumerWorld(t=2, tt=2)
    consumer = Consumer(world, "a", subscribed_topic_names=[], subscribed_topic_regex="t+")
    settle(consumer)
    assert len(consumer.owned) == 4
    consumer.beat(subscribed_topic_regex="t")
    settle(consumer)
    assert {topic for topic, _ in consumer.owned} == {"t"}
    assert set(world.machine.consumers.by_id[GROUP].expressions) == {"t"}
    consumer.beat(subscribed_topic_regex="")
    settle(consumer)
    assert consumer.owned == frozenset()
    last = {repr(key): value for key, value in world.log}
    assert last[repr(ConsumerGroupRegularExpressionKey(GROUP, "t"))] is None
