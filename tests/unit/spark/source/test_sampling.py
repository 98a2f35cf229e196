from ottla.model.types import TopicPartition
from ottla.spark.options import Access
from ottla.spark.source.planning import Range
from ottla.spark.source.sampling import Sampler
from ottla.testing import Broker
from tests.unit.spark.sources import source_of


def test_bytes_are_told_from_the_log_itself(broker: Broker) -> None:
    topic = broker.create_topic("sampling", partitions=2)
    for _ in range(20):
        broker.produce(topic, *["s" * 100] * 100, partition=0)
        broker.produce(topic, *["l" * 5_000] * 10, partition=1)
    small, large = TopicPartition(topic, 0), TopicPartition(topic, 1)
    sources = {place: source_of(broker, topic, place.partition) for place in (small, large)}
    sampler = Sampler(Access(broker.bootstrap_servers))
    ranges = [Range(small, 0, 2000), Range(large, 0, 200)]
    ends = sampler.ends(ranges, 120_000, lambda: sources)
    size = ends[small] * 110 + ends[large] * 5_010
    assert 80_000 < size < 160_000
    assert sampler.ends(ranges, 10**9, lambda: sources) == {small: 2000, large: 200}


def test_batches_larger_than_a_sample_count_too(broker: Broker) -> None:
    topic = broker.create_topic("sampling-large", partitions=2)
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    for place in places:
        broker.produce(topic, *["l" * 10_000] * 20, partition=place.partition)
    sources = {place: source_of(broker, topic, place.partition) for place in places}
    sampler = Sampler(Access(broker.bootstrap_servers))
    ends = sampler.ends([Range(place, 0, 20) for place in places], 100_000, lambda: sources)
    assert all(3 <= end <= 7 for end in ends.values())


def test_little_is_not_looked_at_again(broker: Broker) -> None:
    topic = broker.create_topic("sampling-again")
    broker.produce(topic, *["x" * 100] * 50)
    place = TopicPartition(topic, 0)
    asked = []

    def sources() -> dict:
        asked.append(1)
        return {place: source_of(broker, topic)}

    sampler = Sampler(Access(broker.bootstrap_servers))
    for end in (40, 45, 50):
        assert sampler.ends([Range(place, 0, end)], 100_000, sources) == {place: end}
    assert len(asked) == 1


def test_a_leader_that_is_gone_stops_nothing(broker: Broker) -> None:
    from dataclasses import replace

    from ottla.env.network import Address

    topic = broker.create_topic("sampling-gone")
    broker.produce(topic, "x")
    place = TopicPartition(topic, 0)
    lost = replace(source_of(broker, topic), leader=Address("127.0.0.1", 1))
    sampler = Sampler(Access(broker.bootstrap_servers))
    assert sampler.ends([Range(place, 0, 1)], 10, lambda: {place: lost}) == {place: 1}
