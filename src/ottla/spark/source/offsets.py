"""How far a stream has read, as Spark writes it to its checkpoint: JSON, equal if the same.

    {"topics": {"orders": {"id": "q1Zg…", "partitions": {"0": 23, "1": 42}}}}

The topic's id is kept: a topic that was deleted and made anew has other records at the same
offsets, and a stream must not take them for the ones that it knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ottla.model.types import ZERO_UUID, Offset, TopicPartition, Uuid, uuid_from_text, uuid_text
from ottla.spark.errors import SparkError


@dataclass(slots=True)
class Progress:
    """The next offset of each partition, and the id of each topic."""

    offsets: dict[TopicPartition, Offset] = field(default_factory=dict)
    ids: dict[str, Uuid] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        topics: dict[str, Any] = {}
        for topic, partition in sorted(self.offsets):
            entry = topics.setdefault(topic, {"id": None, "partitions": {}})
            topic_id = self.ids.get(topic, ZERO_UUID)
            entry["id"] = None if topic_id == ZERO_UUID else uuid_text(topic_id)
            entry["partitions"][str(partition)] = self.offsets[TopicPartition(topic, partition)]
        return {"topics": topics}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Progress":
        made = cls()
        try:
            for topic, entry in data["topics"].items():
                text = entry["id"]
                made.ids[topic] = ZERO_UUID if text is None else uuid_from_text(text)
                for partition, offset in entry["partitions"].items():
                    made.offsets[TopicPartition(topic, int(partition))] = int(offset)
        except (AttributeError, KeyError, TypeError, ValueError) as failure:
            raise SparkError(
                f"the checkpoint holds offsets that this source did not write: {data!r};"
                " begin with a new checkpointLocation"
            ) from failure
        return made

    def has_same_topic(self, other: "Progress", topic: str) -> bool:
        """Whether both speak of the same topic; brokers without ids leave only the name."""
        known, seen = self.ids.get(topic, ZERO_UUID), other.ids.get(topic, ZERO_UUID)
        return ZERO_UUID in (known, seen) or known == seen
