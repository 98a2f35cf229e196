"""What the tests of readers share: a topic with known rows, and its tasks."""

from collections.abc import Iterable

from ottla.client.blocking import Client
from ottla.client.offsets import READ_UNCOMMITTED
from ottla.env.network import Address
from ottla.model.types import TopicPartition
from ottla.spark.options import Access
from ottla.spark.source.discovery import Discovery
from ottla.spark.source.fetching import Fetcher
from ottla.spark.source.options import SourceOptions, source_options
from ottla.spark.source.source import Manner, Source
from ottla.testing import Broker


def options_for(
    broker: Broker, topic: str, *, is_stream: bool = True, **more: str
) -> SourceOptions:
    chosen = {"kafka.bootstrap.servers": broker.bootstrap_servers, **more}
    if not {"subscribePattern", "assign"} & set(more):
        chosen.setdefault("subscribe", topic)
    return source_options(chosen, is_stream=is_stream)


def source_of(broker: Broker, topic: str, partition: int = 0) -> Source:
    with Discovery(options_for(broker, topic)) as discovery:
        discovery.partitions()
        place = TopicPartition(topic, partition)
        return discovery.sources([place])[place]


def manner_for(
    broker: Broker,
    *,
    fetch_bytes: int = 1 << 20,
    isolation: int = READ_UNCOMMITTED,
    fails_on_data_loss: bool = True,
) -> Manner:
    access = Access(broker.bootstrap_servers, request_ms_max=2_000)
    return Manner(access, isolation, fetch_bytes, 100, fails_on_data_loss)


def offsets_in(fetcher: Fetcher) -> list[int]:
    """The base offsets of batches, in the order they came."""
    return [item.batch.base_offset for fetched in fetcher.fetches() for item in fetched.placed]


def fill(broker: Broker, topic: str, batches: int, size: int = 10) -> None:
    for number in range(batches):
        broker.produce(topic, *(f"{number}-{item}" for item in range(size)), partition=0)


def delete_before(broker: Broker, topic: str, offset: int) -> None:
    with Client(broker.bootstrap_servers) as client:
        client.run(client.admin.delete_records({TopicPartition(topic, 0): offset}))


def address_of(broker: Broker) -> Address:
    return Address(broker.host, broker.port)


def names(places: Iterable[TopicPartition]) -> list[str]:
    return [f"{place.topic}-{place.partition}" for place in places]
