"""Subscriptions by regular expression."""

from ottla.model.errors import ErrorCode
from ottla.protocol.consumer_group_records import ConsumerGroupRegularExpressionKey
from tests.unit.groups.consuming import Consumer, ConsumerWorld, settle
from tests.unit.groups.driving import GROUP

REGEX = {"subscribed_topic_names": [], "subscribed_topic_regex": "t.*"}


def test_an_expression_stands_for_the_topics_that_match_it_as_they_come_and_go() -> None:
    world = ConsumerWorld(t1=1, other=1)
    consumer = Consumer(world, "a", **REGEX)
    settle(consumer)
    assert consumer.owned == {("t1", 0)}
    world.change_topics(t2=2)
    settle(consumer)
    assert consumer.owned == {("t1", 0), ("t2", 0), ("t2", 1)}
    world.reload()
    del world.topics.sizes["t1"]
    world.change_topics()
    settle(consumer)
    assert consumer.owned == {("t2", 0), ("t2", 1)}


def test_names_and_expressions_live_in_one_group() -> None:
    world = ConsumerWorld(t1=2, u=2)
    both = Consumer(world, "a", **REGEX), Consumer(world, "b", subscribed_topic_names=["u"])
    settle(*both)
    assert both[0].owned == {("t1", 0), ("t1", 1)}
    assert both[1].owned == {("u", 0), ("u", 1)}


def test_a_bad_expression_is_refused_and_leaves_nothing_behind() -> None:
    world = ConsumerWorld()
    consumer = Consumer(world, "a", subscribed_topic_names=[], subscribed_topic_regex="(")
    consumer.beat()
    assert consumer.error == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.log == []
    assert GROUP not in world.machine.consumers.by_id


def test_an_expression_that_nobody_uses_is_forgotten() -> None:
    world = ConsumerWorld()
    consumer = Consumer(world, "a", **REGEX)
    settle(consumer)
    consumer.leave()
    assert (ConsumerGroupRegularExpressionKey(GROUP, "t.*"), None) in world.log
    assert world.machine.consumers.by_id[GROUP].expressions == {}
