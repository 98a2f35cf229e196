"""The topics of the committed image as group coordinators see them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ottla.broker.context import ClusterView
from ottla.groups.topics import TopicFacts
from ottla.model.types import Uuid

if TYPE_CHECKING:
    from ottla.metadata.image.cluster import Topic


class ImageTopics:
    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster

    def named(self, name: str) -> TopicFacts | None:
        return _facts(self._cluster.image.topics_by_name.get(name))

    def by_id(self, topic_id: Uuid) -> TopicFacts | None:
        return _facts(self._cluster.image.topics_by_id.get(topic_id))

    def names(self) -> Iterable[str]:
        return self._cluster.image.topics_by_name


def _facts(topic: "Topic | None") -> TopicFacts | None:
    return None if topic is None else TopicFacts(topic.name, topic.id, len(topic.partitions))
