"""The changes that a range of the metadata log made to the image, for its subscribers."""

from dataclasses import dataclass, field

from ottla.metadata.image.cluster import Topic
from ottla.model.types import NodeId, Uuid


@dataclass(slots=True)
class ImageDelta:
    """Process deleted topics first: a name may be deleted and recreated, with another id, in one
    delta.
    """

    deleted: list[Topic] = field(default_factory=list)  # In their last state.
    created: list[Topic] = field(default_factory=list)
    changed: list[tuple[Topic, Topic]] = field(default_factory=list)  # Before and after.
    configs: set[tuple[int, str]] = field(default_factory=set)
    brokers: set[NodeId] = field(default_factory=set)
    controllers: set[NodeId] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    acls: bool = False
    quotas: bool = False
    credentials: bool = False  # SCRAM or delegation tokens.


@dataclass(slots=True)
class Changes:
    """A delta under construction: topics are compared only at its end."""

    topics: dict[Uuid, Topic | None] = field(default_factory=dict)  # State before; None if new.
    configs: set[tuple[int, str]] = field(default_factory=set)
    brokers: set[NodeId] = field(default_factory=set)
    controllers: set[NodeId] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    acls: bool = False
    quotas: bool = False
    credentials: bool = False

    def finish(self, topics_by_id: dict[Uuid, Topic]) -> ImageDelta:
        delta = ImageDelta(
            configs=self.configs,
            brokers=self.brokers,
            controllers=self.controllers,
            features=self.features,
            acls=self.acls,
            quotas=self.quotas,
            credentials=self.credentials,
        )
        for topic_id, before in self.topics.items():
            after = topics_by_id.get(topic_id)
            if before is None and after is not None:
                delta.created.append(after)
            elif before is not None and after is None:
                delta.deleted.append(before)
            elif before is not None and after is not None:
                delta.changed.append((before, after))
        return delta
