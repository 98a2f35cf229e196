"""What a task reads, and how: all that the driver tells it.

Apart from `fetching`, which the driver, in its process that starts anew for every stream, can do
without.
"""

from dataclasses import dataclass, replace

from ottla.env.network import Address
from ottla.model.types import Uuid
from ottla.spark.options import Access


@dataclass(frozen=True, slots=True)
class Source:
    """A partition and where its leader was when the task was planned."""

    topic: str
    topic_id: Uuid
    partition: int
    leader: Address

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def with_id(self, topic_id: Uuid) -> "Source":
        return replace(self, topic_id=topic_id)


@dataclass(frozen=True, slots=True)
class Manner:
    """How to fetch; the same for all tasks of a query."""

    access: Access
    isolation: int
    fetch_bytes: int
    wait_ms: int
    fails_on_data_loss: bool
