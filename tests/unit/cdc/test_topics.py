"""Topics of a tail: made compacted, and read to see how far they are."""

from collections.abc import Iterator

import pytest

from ottla.cdc.errors import NotPossible
from ottla.cdc.position import NOWHERE, Position, headers_of
from ottla.cdc.topics import ensure_topic, is_compacted, last_positions, read_to_end
from ottla.client.cluster import Cluster
from ottla.client.producer import Producer
from ottla.client.session import run
from ottla.model.types import TopicPartition
from ottla.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_a_topic_is_made_compacted_once(broker: Broker) -> None:
    async def story(cluster: Cluster) -> None:
        assert await ensure_topic(cluster, "made", 3, None)
        assert not await ensure_topic(cluster, "made", 5, None)
        assert len((await cluster.topic("made")).partitions) == 3
        assert await is_compacted(cluster, "made")

    run(story, broker.bootstrap_servers)
    broker.create_topic("plain")

    async def other(cluster: Cluster) -> bool:
        return await is_compacted(cluster, "plain")

    assert not run(other, broker.bootstrap_servers)


def test_the_last_record_of_each_partition_tells_how_far_it_is(broker: Broker) -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "written", 2, None)
        place, empty = TopicPartition("written", 0), TopicPartition("written", 1)
        assert await last_positions(cluster, "written") == {place: NOWHERE, empty: NOWHERE}
        async with Producer(cluster) as producer:
            for change in range(1, 250):
                headers = headers_of("c", Position(70, change), 1, 2)
                await producer.send("written", b"v", b"k", headers=headers, partition=0)
        found = await last_positions(cluster, "written")
        assert found == {place: Position(70, 249), empty: NOWHERE}
        read = [message.offset async for message in read_to_end(cluster, [place, empty])]
        assert read == list(range(249))

    run(story, broker.bootstrap_servers)


def test_a_topic_that_others_write_to_is_refused(broker: Broker) -> None:
    broker.create_topic("others")
    broker.produce("others", b"x")

    async def story(cluster: Cluster) -> None:
        with pytest.raises(NotPossible, match="offset 0 of others, partition 0, was not written"):
            await last_positions(cluster, "others")

    run(story, broker.bootstrap_servers)
