"""Topics of the image as groups see them, and expressions that cannot hold up a broker."""

import time

import pytest

from ottla.broker.group_topics import ImageTopics, compile_expression
from ottla.groups.topics import BadExpression, TopicFacts
from tests.unit.broker.serving import serving


def test_topics_are_those_of_the_image() -> None:
    with serving() as world:
        topic_id = world.topic("t", 3)
        topics = ImageTopics(world.broker)
        assert topics.named("t") == topics.by_id(topic_id) == TopicFacts("t", topic_id, 3)
        assert topics.named("u") is None
        assert list(topics.names()) == ["t"]


def test_an_expression_matches_whole_names() -> None:
    matches = compile_expression("orders-(eu|us)")
    assert matches("orders-eu")
    assert not matches("my-orders-eu")
    assert not matches("orders-europe")


def test_a_bad_expression_says_why() -> None:
    with pytest.raises(BadExpression, match="missing"):
        compile_expression("(")


def test_an_expression_that_would_blow_up_does_not() -> None:
    matches = compile_expression("(a*)*b")
    began = time.monotonic()
    assert not matches("a" * 249)
    assert time.monotonic() - began < 1
