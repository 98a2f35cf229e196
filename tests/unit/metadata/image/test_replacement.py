"""The delta between two images equals the one of the records in between."""

from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.replacement import delta_between
from ottla.model.types import NodeId
from ottla.protocol import metadata_records as records


def image(*written: records.MetadataRecord) -> ClusterImage:
    made = ClusterImage("c")
    for offset, record in enumerate(written):
        made.apply(offset, record)
    made.take_delta()
    return made


def topic(name: str) -> records.TopicRecord:
    return records.TopicRecord(name, name.encode() * 16)


def partition(name: str, leader: int) -> records.PartitionRecord:
    return records.PartitionRecord(
        partition_id=0, topic_id=name.encode() * 16, replicas=[1, 2], isr=[1, 2], leader=leader
    )


def test_topics_that_came_went_and_changed() -> None:
    before = image(topic("a"), topic("b"), partition("b", 1), topic("s"), partition("s", 1))
    after = image(topic("b"), partition("b", 2), topic("c"), topic("s"), partition("s", 1))
    delta = delta_between(before, after)
    assert [t.name for t in delta.deleted] == ["a"]
    assert [t.name for t in delta.created] == ["c"]
    assert [(b.name, a.partitions[0].leader) for b, a in delta.changed] == [("b", 2)]


def test_configs_brokers_and_features() -> None:
    before = image(
        records.ConfigRecord(2, "t", "retention.ms", "1"),
        records.FeatureLevelRecord("metadata.version", 29),
    )
    after = image(
        records.ConfigRecord(2, "t", "retention.ms", "2"),
        records.RegisterBrokerRecord(broker_id=3),
        records.FeatureLevelRecord("metadata.version", 30),
    )
    delta = delta_between(before, after)
    assert delta.configs == {(2, "t")}
    assert delta.brokers == {NodeId(3)}
    assert delta.features == {"metadata.version"}
    assert delta_between(after, after).brokers == set()
