"""Partitions as a person names them: `orders`, or `orders:0,2`."""

from collections import Counter
from collections.abc import Iterable, Sequence

from ottla.cli.tasks.client_options import Misuse
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.metadata import UnknownPartition
from ottla.model.types import TopicPartition
from ottla.protocol.messages.metadata import MetadataResponsePartition

Partitions = dict[TopicPartition, MetadataResponsePartition]


async def named_partitions(cluster: Cluster, names: Sequence[str]) -> Partitions:
    """Partitions of `topic` or `topic:0,1`, sorted; a topic named twice has all that it names."""
    wanted = parse_names(names)
    known = await partitions_of(cluster, list(wanted))
    check_known(known, (TopicPartition(n, i) for n, some in wanted.items() for i in some or ()))
    return {
        place: known[place]
        for place in sorted(known)
        if (some := wanted[place.topic]) is None or place.partition in some
    }


def parse_names(names: Sequence[str]) -> dict[str, set[int] | None]:
    """Numbers of partitions by topic; None for all of a topic."""
    wanted: dict[str, set[int] | None] = {}
    for text in names:
        name, colon, parts = text.partition(":")
        if not colon:
            wanted[name] = None
            continue
        if not all(part.isdecimal() for part in parts.split(",")):
            raise Misuse(f"{text!r}: expected a topic, or some of its partitions like orders:0,2")
        some = wanted.setdefault(name, set())
        if some is not None:
            some.update(int(part) for part in parts.split(","))
    return wanted


async def partitions_of(cluster: Cluster, topics: Sequence[str] | None) -> Partitions:
    """All partitions of these topics, or of all topics."""
    return {
        TopicPartition(topic.name or "", item.partition_index): item
        for topic in await Admin(cluster).describe_topics(topics)
        for item in topic.partitions
    }


def check_known(known: Partitions, places: Iterable[TopicPartition]) -> None:
    counts = Counter(place.topic for place in known)
    for place in places:
        if place not in known:
            raise UnknownPartition(place.topic, place.partition, counts[place.topic])
