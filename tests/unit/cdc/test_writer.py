"""The writer: what is not newer than what a partition holds is passed over."""

import pytest

from ottla.cdc.position import NOWHERE, Position
from ottla.cdc.topics import ensure_topic, last_positions
from ottla.cdc.writer import Writer
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.metadata import UnknownTopic
from ottla.client.partitioner import partition_of_key
from ottla.client.producer import Producer
from ottla.client.session import run
from ottla.testing import Broker


def test_each_partition_remembers_how_far_it_is() -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 2, None)
        async with Producer(cluster) as producer:
            writer = Writer(cluster, producer)
            writer.begin("t", await last_positions(cluster, "t"))
            for change, key in enumerate([b"a", b"b", b"c", b"d", b"e"], 1):
                place, position = writer.place("t", key), Position(9, change)
                assert place.partition == partition_of_key(key, 2), "where every client looks"
                assert writer.is_new(place, position)
                await writer.write(place, key, b"v", op="c", position=position, xid=1, ts_ms=3)
            futures = writer.take_unconfirmed()
            assert len(futures) == 2, "one for each partition"
            await writer.flush()
            assert all(future.done() for future in futures)
            assert writer.take_unconfirmed() == []
            reached = {place: writer.reached(place) for place in writer.places("t")}
        assert reached == await last_positions(cluster, "t")
        assert NOWHERE not in reached.values()
        again = Writer(cluster, producer)
        again.begin("t", reached)
        newer = [again.is_new(again.place("t", b"a"), Position(9, change)) for change in (1, 6)]
        assert newer == [False, True]
        assert again.passed_over == 1

    with Broker() as broker:
        run(story, broker.bootstrap_servers)


def test_a_topic_that_was_deleted_is_not_made_anew() -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 1, None)
        async with Producer(cluster) as producer:
            writer = Writer(cluster, producer)
            writer.begin("t", await last_positions(cluster, "t"))
            await Admin(cluster).delete_topic("t")
            place, position = writer.place("t", b"a"), Position(1, 1)
            with pytest.raises(UnknownTopic):
                await writer.write(place, b"a", b"v", op="c", position=position, xid=1, ts_ms=3)

    with Broker() as broker:
        run(story, broker.bootstrap_servers)
        assert broker.topics() == []
