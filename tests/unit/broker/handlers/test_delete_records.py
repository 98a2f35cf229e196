"""DeleteRecords: the log's start moves at once, for good, and only where that is allowed."""

import asyncio
import errno

import pytest

from ottla.metadata.decisions.brokers import Died
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId
from ottla.protocol.messages import delete_records as wire
from tests.unit.broker.replicating import Cluster, Node, replicating
from tests.unit.broker.requests import fetch_request, only, values_of, write
from tests.unit.broker.serving import World, held_workers, serving


def before(offset: int, topic: str = "t", partition: int = 0) -> wire.Request:
    part = wire.DeleteRecordsPartition(partition, offset)
    return wire.Request([wire.DeleteRecordsTopic(topic, [part])], 1000)


def delete(world: World, offset: int, version: int = 2, **where: int | str) -> tuple[int, int]:
    part = only(world.client().ask(before(offset, **where), version))
    return part.error_code, part.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_records_are_out_of_reach_at_once(version: int) -> None:
    with serving() as world:
        world.topic()
        for value in (b"a", b"b", b"c"):
            write(world, value)
        assert delete(world, 2, version) == (0, 2)
        part = only(world.client().ask(fetch_request(("t", 0, 1)), 12))
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        part = only(world.client().ask(fetch_request(("t", 0, 2)), 12))
        assert (part.log_start_offset, values_of(part.records)) == (2, [b"c"])


def test_minus_one_means_all_of_them() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        assert delete(world, -1) == (0, 2)
        assert write(world, b"c") == 2


def test_going_back_changes_nothing() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        assert delete(world, 2) == (0, 2)
        assert delete(world, 1) == (0, 2)
        assert delete(world, 2) == (0, 2)


@pytest.mark.parametrize("offset", [-2, 4, 1 << 40])
def test_offsets_that_are_not_there_are_refused(offset: int) -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        assert delete(world, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert world.partition().log.log_start_offset == 0


def test_compacted_topics_keep_their_records() -> None:
    with serving() as world:
        world.topic("t", cleanup_policy="compact")
        assert delete(world, -1) == (ErrorCode.POLICY_VIOLATION, -1)


def test_unknown_partitions_are_refused() -> None:
    with serving() as world:
        world.topic()
        unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert delete(world, 0, partition=1) == unknown
        assert delete(world, 0, topic="nobody") == unknown


def test_what_was_deleted_does_not_come_back_after_a_power_cut() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        world.run(world.broker._housekeeping._sync_and_checkpoint())
        assert delete(world, 2) == (0, 2)
        world.lose_power()
        assert world.partition().log.log_start_offset == 2


def test_many_partitions_are_written_down_at_once_and_not_by_the_loop() -> None:
    with serving() as world:
        world.topic("t", 40)
        for index in range(40):
            write(world, b"a", b"b", partition=index)
        parts = [wire.DeleteRecordsPartition(index, 1) for index in range(40)]
        client = world.client()
        world.settle()  # Workers sync the names of new logs.
        waiting_before = world.workers.waiting
        with held_workers(world) as done_by_loop:
            asked = client.send(wire.Request([wire.DeleteRecordsTopic("t", parts)], 1000), 2)
            world.settle()
            assert done_by_loop == []
            assert not client.has_answer(asked), "it is not durable yet"
            assert world.workers.waiting == waiting_before + 1
            assert write(world, b"c", partition=7) == 2
        world.pass_ms(10)
        results = client.answers()[asked].topics[0].partitions
        assert {(part.error_code, part.low_watermark) for part in results} == {(0, 1)}
        world.lose_power()
        assert {p.log.log_start_offset for p in world.broker.partitions.all()} == {1}


def test_what_cannot_be_written_down_is_not_confirmed() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b", b"c")
        for _ in range(2):  # Tried again, it is out of reach already, and not yet for good.
            world.disk.fail("append", errno.ENOSPC, path_contains="log-start-offset-checkpoint")
            assert delete(world, 2) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        assert delete(world, 2) == (0, 2)
        world.lose_power()
        assert world.partition().log.log_start_offset == 2


def test_those_who_wait_are_told_of_the_new_start() -> None:
    with serving() as world:
        world.topic()
        write(world, b"a", b"b")
        client = world.client()
        session_id = client.ask(fetch_request(("t", 0, 2), session_epoch=0), 12).session_id
        assert delete(world, 2) == (0, 2)
        answer = client.ask(fetch_request(session_id=session_id, session_epoch=1), 12)
        assert only(answer).log_start_offset == 2


def answer_of(cluster: Cluster, node: Node, offset: int, timeout_ms: int) -> tuple[int, int, int]:
    """The error, the low watermark, and how long it took in milliseconds."""
    began = cluster.clock.monotonic()
    request = before(offset)
    request.timeout_ms = timeout_ms
    part = only(cluster.ask(node, request, wire.Response))
    return part.error_code, part.low_watermark, cluster.clock.monotonic() - began


def test_the_answer_waits_for_the_followers_and_they_follow_at_once() -> None:
    with replicating() as cluster:
        cluster.topic()
        cluster.produce(cluster.leader(), b"1", b"2", b"3")
        cluster.pass_ms(1200)  # By now every fetch waits at the leader, and for a while longer.
        code, low_watermark, took_ms = answer_of(cluster, cluster.leader(), 2, 5000)
        assert (code, low_watermark) == (0, 2)
        assert took_ms < 100, "nobody sat out a fetch that waits"
        for node in cluster.nodes.values():
            assert node.partition().log.log_start_offset == 2
            assert not node.partition().deletions


def test_a_follower_that_is_silent_makes_it_time_out_and_a_dead_one_does_not() -> None:
    with replicating() as cluster:
        cluster.topic()
        cluster.produce(cluster.leader(), b"1", b"2", b"3")
        cluster.pass_ms(200)
        follower = cluster.followers()[0]
        cluster.network.clog(follower.host, 60_000_000_000)
        code, low_watermark, took_ms = answer_of(cluster, cluster.leader(), 2, 700)
        assert (code, low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        assert 700 <= took_ms < 1000
        assert cluster.leader().partition().log.log_start_offset == 2, "deleted all the same"
        assert not cluster.leader().partition().deletions

        async def fence() -> None:
            await asyncio.sleep(0.5)
            epoch = cluster.log.image.brokers[NodeId(follower.number)].epoch
            cluster.log.decide(Died(NodeId(follower.number), epoch))

        task = cluster.loop.create_task(fence())
        code, low_watermark, took_ms = answer_of(cluster, cluster.leader(), 3, 5000)
        assert (code, low_watermark) == (0, 3)
        assert 500 <= took_ms < 1000
        assert task.done()


def test_a_leader_that_is_deposed_says_so_to_who_waits() -> None:
    with replicating() as cluster:
        cluster.topic()
        cluster.produce(cluster.leader(), b"1", b"2", b"3")
        cluster.pass_ms(200)
        leader = cluster.leader()
        cluster.network.clog(cluster.followers()[0].host, 60_000_000_000)

        async def depose() -> None:
            await asyncio.sleep(0.5)
            epoch = cluster.log.image.brokers[NodeId(leader.number)].epoch
            cluster.log.decide(Died(NodeId(leader.number), epoch))

        task = cluster.loop.create_task(depose())
        code, low_watermark, _ = answer_of(cluster, leader, 2, 5000)
        assert (code, low_watermark) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert task.done()
