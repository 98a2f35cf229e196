"""Topics of the image as groups see them."""

from ottla.broker.coordinators.group_topics import ImageTopics
from ottla.groups.topics import TopicFacts
from tests.unit.broker.serving import serving


def test_topics_are_those_of_the_image() -> None:
    with serving() as world:
        topic_id = world.topic("t", 3)
        topics = ImageTopics(world.broker)
        assert topics.named("t") == topics.by_id(topic_id) == TopicFacts("t", topic_id, 3)
        assert topics.named("u") is None
        assert list(topics.names()) == ["t"]
