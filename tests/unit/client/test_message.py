"""A message knows where it lies."""

from ottla.client.message import Message
from ottla.model.types import TopicPartition


def test_a_message_names_its_partition() -> None:
    message = Message("t", 3, 10, -1, False, None, b"v", ())
    assert message.topic_partition == TopicPartition("t", 3)
