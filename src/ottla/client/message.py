"""A record as it is read: with the place where it lies."""

from typing import NamedTuple

from ottla.model.types import Offset, TopicPartition
from ottla.records.record import Headers


class Message(NamedTuple):
    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int  # -1 if it has none.
    is_log_append_time: bool  # Whether the broker stamped it, or its producer.
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
