"""Topics of a tail: created compacted, and read for their positions."""

from collections.abc import Iterator

import pytest

from ottla.cdc import topics
from ottla.cdc.errors import NotPossible
from ottla.cdc.position import NOWHERE, Position, headers_of
from ottla.cdc.topics import Reached, ensure_topic, how_far, is_compacted, read_to_end
from ottla.client.cluster import Cluster
from ottla.client.idempotence import Identity, Numbering
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


def test_the_last_record_of_each_partition_is_its_position(broker: Broker) -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "written", 2, None)
        place, empty = TopicPartition("written", 0), TopicPartition("written", 1)
        found = await how_far(cluster, "written")
        assert {(reached.position, reached.end_offset) for reached in found.values()} == {
            (NOWHERE, 0)
        }
        async with Producer(cluster, numbering=lambda place: found[place].numbering) as producer:
            for change in range(1, 250):
                headers = headers_of("c", Position(70, change), 1, 2)
                await producer.send("written", b"v", b"k", headers=headers, partition=0)
        identity, sequence = found[place].numbering
        assert (identity.producer_epoch, sequence) == (0, 0)
        assert await how_far(cluster, "written") == {
            place: Reached(Position(70, 249), 249, Numbering(identity, 249)),
            empty: found[empty],
        }
        raised = await how_far(cluster, "written", in_next_epoch=True)
        assert raised[place].numbering == Numbering(Identity(identity.producer_id, 1), 0)
        read = [message.offset async for message in read_to_end(cluster, [place, empty])]
        assert read == list(range(249))

    run(story, broker.bootstrap_servers)


def test_a_batch_written_behind_the_known_end_counts_as_a_whole(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former tail wrote it after the end offset was read."""
    place = TopicPartition("overtaken", 0)

    async def end_of_before(*_: object) -> dict[TopicPartition, int]:
        return {place: 1}

    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "overtaken", 1, None)
        found = await how_far(cluster, "overtaken")
        async with Producer(cluster, numbering=lambda place: found[place].numbering) as producer:
            for change in range(1, 4):
                headers = headers_of("c", Position(70, change), 1, 2)
                await producer.send("overtaken", b"v", b"k", headers=headers)
        monkeypatch.setattr(topics, "end_offsets", end_of_before)
        numbering = Numbering(found[place].numbering.identity, 3)
        assert await how_far(cluster, "overtaken") == {
            place: Reached(Position(70, 3), 3, numbering)
        }

    run(story, broker.bootstrap_servers)


def test_a_topic_that_others_write_to_is_refused(broker: Broker) -> None:
    broker.create_topic("others")
    broker.produce("others", b"x")

    async def story(cluster: Cluster) -> None:
        with pytest.raises(NotPossible, match="offset 0 of others, partition 0, was not written"):
            await how_far(cluster, "others")

    run(story, broker.bootstrap_servers)
