"""Delta between two unrelated images, for a snapshot fetched from the leader.

Subscribers get all differences as if they had been written step by step.
"""

from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.image import ClusterImage


def delta_between(before: ClusterImage, after: ClusterImage) -> ImageDelta:
    delta = ImageDelta(acls=True, quotas=True, credentials=True)
    for topic_id, topic in before.topics_by_id.items():
        now = after.topics_by_id.get(topic_id)
        if now is None:
            delta.deleted.append(topic)
        elif now != topic:
            delta.changed.append((topic, now))
    for topic_id, topic in after.topics_by_id.items():
        if topic_id not in before.topics_by_id:
            delta.created.append(topic)
    delta.configs = _differing(before.configs, after.configs)
    delta.brokers = _differing(before.brokers, after.brokers)
    delta.controllers = _differing(before.controllers, after.controllers)
    delta.features = _differing(before.features, after.features)
    return delta


def _differing(before: dict, after: dict) -> set:  # type: ignore[type-arg]
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
