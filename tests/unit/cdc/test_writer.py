"""The writer skips changes that are not newer than the partition's position."""

import pytest

from ottla.cdc.errors import Interrupted
from ottla.cdc.position import NOWHERE, Position
from ottla.cdc.topics import ensure_topic, how_far
from ottla.cdc.writer import Writer
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.delivery import ProducerSettings
from ottla.client.metadata import UnknownTopic
from ottla.client.partitioner import partition_of_key
from ottla.client.session import run
from ottla.testing import Broker

SETTINGS = ProducerSettings(stops_at_failure=True)


async def write(writer: Writer, *changes: int) -> None:
    """The changes of one commit, in partition 0 of topic t, if they are new there."""
    place = writer.places("t")[0]
    for change in changes:
        position = Position(9, change)
        if writer.is_new(place, position):
            await writer.write(place, b"k", b"v", op="c", position=position, xid=1, ts_ms=3)


async def written(cluster: Cluster) -> int:
    return sum(reached.end_offset for reached in (await how_far(cluster, "t")).values())


def test_writes_at_or_below_the_position_are_skipped() -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 2, None)
        writer = Writer(cluster, SETTINGS)
        async with writer.session():
            writer.begin("t", await how_far(cluster, "t"))
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
        found = await how_far(cluster, "t")
        assert reached == {place: item.position for place, item in found.items()}
        assert NOWHERE not in reached.values()
        async with writer.session():
            writer.begin("t", found)
            newer = [
                writer.is_new(writer.place("t", b"a"), Position(9, change)) for change in (1, 6)
            ]
        assert newer == [False, True]
        assert writer.passed_over == 1

    with Broker() as broker:
        run(story, broker.bootstrap_servers)


def test_two_tails_that_have_seen_the_same_end_write_each_change_once() -> None:
    async def overlap(cluster: Cluster, one: Writer, other: Writer, first: int) -> None:
        async with one.session(), other.session():
            for writer in (one, other):
                writer.begin("t", await how_far(cluster, "t"))
            await write(one, first, first + 1)
            await one.flush()
            await write(other, first, first + 1)  # The broker has these two.
            await other.flush()
            await write(other, first + 2)
            await other.flush()
            await write(one, first + 2, first + 3)

    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 1, None)
        one, other = Writer(cluster, SETTINGS), Writer(cluster, SETTINGS)
        for first in (1, 7):  # To an empty partition, and to one that was written before.
            with pytest.raises(Interrupted, match="another tail has written"):
                await overlap(cluster, one, other, first)
            assert await written(cluster) == first + 2
            async with one.session():
                one.begin("t", await how_far(cluster, "t"))
                await write(one, *range(first, first + 6))
            assert await written(cluster) == first + 5

    with Broker() as broker:
        run(story, broker.bootstrap_servers)


def test_snapshot_refuses_what_a_former_tail_still_writes() -> None:
    async def overlap(cluster: Cluster, former: Writer, snapshot: Writer) -> None:
        async with former.session(), snapshot.session():
            former.begin("t", await how_far(cluster, "t"))
            await write(former, 1)
            await former.flush()
            snapshot.begin("t", await how_far(cluster, "t", in_next_epoch=True))
            await write(snapshot, 2)
            await snapshot.flush()
            await snapshot.check_alone()
            await write(former, 2)
            await former.flush()

    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 1, None)
        former, snapshot = Writer(cluster, SETTINGS), Writer(cluster, SETTINGS)
        with pytest.raises(Interrupted, match="another tail has written"):
            await overlap(cluster, former, snapshot)
        assert await written(cluster) == 2

    with Broker() as broker:
        run(story, broker.bootstrap_servers)


def test_a_session_counts_only_what_was_written_in_it() -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 1, None)
        writer = Writer(cluster, SETTINGS)
        for change in (1, 2):
            async with writer.session():
                writer.begin("t", await how_far(cluster, "t", in_next_epoch=True))
                await write(writer, change)
                await writer.flush()
                await writer.check_alone()

    with Broker() as broker:
        run(story, broker.bootstrap_servers)


def test_snapshot_notices_what_a_former_tail_wrote_before_it() -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 1, None)
        former, snapshot = Writer(cluster, SETTINGS), Writer(cluster, SETTINGS)
        async with former.session(), snapshot.session():
            former.begin("t", await how_far(cluster, "t"))
            snapshot.begin("t", await how_far(cluster, "t", in_next_epoch=True))
            await write(former, 1)
            await former.flush()
            await write(snapshot, 2)
            await snapshot.flush()
            with pytest.raises(Interrupted, match="another tail has written to t-0"):
                await snapshot.check_alone()

    with Broker() as broker:
        run(story, broker.bootstrap_servers)


def test_a_deleted_topic_is_not_recreated() -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 1, None)
        writer = Writer(cluster, SETTINGS)
        async with writer.session():
            writer.begin("t", await how_far(cluster, "t"))
            await Admin(cluster).delete_topic("t")
            with pytest.raises(UnknownTopic):
                await write(writer, 1)

    with Broker() as broker:
        run(story, broker.bootstrap_servers)
        assert broker.topics() == []
