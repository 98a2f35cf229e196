"""Group commit: one round at a time, each for all that gathered during the last."""

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.partitions.partition import Partition
from ottla.env.workers import InlineWorkers
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import create_topics
from ottla.storage.sync_work import DirectoryToSync, Syncable, sync_all
from tests.unit.broker.requests import batch, only, produce_request, write
from tests.unit.broker.serving import HeldWorkers, serving


def test_what_gathers_during_a_round_is_one_round_later() -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic("t")
        clients = [world.client() for _ in range(10)]
        world.workers.is_holding = True
        first = clients[0].send(produce_request(batch(b"a")), 12)
        world.settle()
        for client in clients[1:]:
            client.send(produce_request(batch(b"b")), 12)
            world.end_turn()
        syncs = []
        step = world.disk.step

        def counting(operation: str, path: str, generation: int | None = None) -> bool:
            if operation == "sync" and path.endswith(".log"):
                syncs.append(path)
            return step(operation, path, generation)

        world.disk.step = counting  # type: ignore[method-assign]
        world.workers.is_holding = False
        world.pass_ms(50)
        assert clients[0].has_answer(first)
        assert all(client.has_answer(1) for client in clients)
        assert len([path for path in syncs if "/t-0/" in path]) == 2


def test_a_stop_is_clean_only_when_the_sync_under_way_is_over() -> None:
    with serving() as world:
        world.topic("t", segment_bytes=1 << 20)
        for _ in range(3):
            write(world, b"x" * 600_000)
        size_bytes = world.partition().log.size_bytes
        world.workers.is_holding = True
        world.broker.partitions.sync.soon(world.partition())
        world.settle()
        stopping = world.loop.create_task(world.broker.stop())
        world.settle()
        assert not world.disk.exists("/data/.kafka_cleanshutdown")
        world.workers.is_holding = False
        world.until(stopping.done)
        world.disk.cut_power()
        world.start()
        assert world.partition().log.size_bytes == size_bytes


def test_a_sync_that_fails_during_a_stop_leaves_no_mark_of_a_clean_one() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        world.workers.is_holding = True
        world.broker.partitions.sync.soon(world.partition())
        world.settle()
        stopping = world.loop.create_task(world.broker.stop())
        world.disk.fail("sync", errno.EIO, path_contains="/data/t-0")
        world.workers.is_holding = False
        world.until(stopping.done)
        assert not world.disk.exists("/data/.kafka_cleanshutdown")


class SlowSync(HeldWorkers):
    """Workers that hold up the syncs of a topic's log, if told so, and nothing else."""

    topic = ""

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        if work is sync_all and f"/{self.topic}-0" in str([path_of(a) for a in arguments[0]]):
            return await super().run(work, *arguments)
        return await InlineWorkers.run(self, work, *arguments)


def path_of(work: Syncable) -> str:
    return getattr(work, "_path", "")


@pytest.mark.parametrize("slow", ["t", "before"])
def test_a_deleted_log_writes_nothing_into_one_that_has_its_name(slow: str) -> None:
    """Whether a worker syncs it at that time, or it waits for one that a worker syncs."""
    with serving() as world:
        for name in ("before", "t"):
            world.topic(name)
            write(world, b"a", topic=name)
        partition = world.partition()
        partition.log.epochs.assign(7, 0)
        world.workers.__class__ = SlowSync
        assert isinstance(world.workers, SlowSync)
        world.workers.topic, world.workers.is_holding = slow, True
        world.broker.partitions.sync.soon(world.partition("before"))
        world.broker.partitions.sync.soon(partition)
        world.settle()
        world.delete("t")
        client = world.client()
        wanted = create_topics.CreatableTopic("t", 1, 1)
        number = client.send(create_topics.Request(topics=[wanted], timeout_ms=1000))
        world.pass_ms(100)
        world.workers.is_holding = False
        assert client.answer_to(number).topics[0].error_code == 0
        write(world, b"b")
        world.pass_ms(10)
        world.run(world.broker.abort())
        world.disk.kill()
        world.start()
        assert world.partition().log.epochs.epoch_of(0) == 0


def test_what_was_answered_survives_a_power_cut() -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic("t", 3)
        for index in range(3):
            for _ in range(4):
                write(world, b"x" * 50, partition=index)
        world.lose_power()
        for index in range(3):
            assert world.partition("t", index).high_watermark == 4


def test_what_a_killed_process_left_in_the_page_cache_is_synced_before_it_counts() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        world.configure("t", "flush.messages", 1)
        world.run(world.broker.abort())
        world.disk.kill()
        world.start()
        assert world.partition().high_watermark == 1
        world.lose_power()
        assert world.partition().high_watermark == 1


def test_all_waits_for_everything_that_is_unsynced() -> None:
    with serving() as world:
        world.topic("t", 3)
        for index in range(3):
            write(world, b"a", partition=index)
        partitions = world.broker.partitions
        assert all(partition.log.is_unsynced for partition in partitions.all())
        world.run(partitions.sync.all(partitions.all()))
        assert not any(partition.log.is_unsynced for partition in partitions.all())
        assert all(partition.log.recovery_point == 1 for partition in partitions.all())
        world.run(partitions.sync.all([]))


def test_all_returns_once_the_logs_are_synced() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        synced = []

        async def wait() -> None:
            await world.broker.partitions.sync.all([world.partition()])
            synced.append(world.partition().log.recovery_point)

        world.workers.is_holding = True
        world.broker.spawn(wait())
        world.pass_ms(5)
        assert synced == []
        world.workers.is_holding = False
        world.pass_ms(5)
        assert synced == [1]


def test_those_who_wait_are_told_though_others_ask_for_the_same_log() -> None:
    with serving() as world:
        world.topic("t", 2)
        for index in range(2):
            write(world, b"a", partition=index)
        sync, waited = world.broker.partitions.sync, []

        async def wait() -> None:
            await sync.all([world.partition("t", 1)])
            waited.append(True)

        world.workers.is_holding = True
        sync.soon(world.partition("t", 0))
        world.pass_ms(5)
        world.broker.spawn(wait())
        world.pass_ms(5)
        sync.soon(world.partition("t", 1))
        world.workers.is_holding = False
        world.pass_ms(5)
        assert waited == [True]


def test_a_failed_sync_is_never_tried_again() -> None:
    with serving(directories=["/data-0", "/data-1"], log_flush_interval_messages=1) as world:
        world.topic("t", 2)
        lost = next(i for i in (0, 1) if world.partition("t", i).log.directory[:7] == "/data-1")
        partition = world.partition("t", lost)
        world.disk.fail("sync", errno.EIO, path_contains=f"/data-1/t-{lost}")
        client = world.client()
        asked = [client.send(produce_request(batch(b"a"), "t", lost), 12) for _ in range(3)]
        world.settle()
        for number in asked:
            assert only(client.answers()[number]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert partition.high_watermark == 0
        assert partition.log.recovery_point == 0
        world.pass_ms(120_000)
        assert write(world, b"b", partition=1 - lost) == 0


def test_a_topic_may_go_between_the_asking_and_the_sync() -> None:
    with serving() as world:
        world.topic("t", 4)
        world.topic("u")
        for index in range(4):
            write(world, b"a", partition=index)
        write(world, b"a", topic="u")
        world.workers.is_holding = True
        world.broker.spawn(world.broker._housekeeping._sync_and_checkpoint())
        world.pass_ms(5)
        world.workers.is_holding = False
        world.delete("t")
        world.pass_ms(100)
        assert not world.broker.failed.done()
        assert not [d for d in world.broker.directories.all() if d.failure]
        assert write(world, b"b", topic="u") == 1


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
def test_a_small_file_that_finds_no_room_is_written_later(error: int) -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic("t")
        world.disk.fail("append", error, path_contains="leader-epoch-checkpoint")
        part = only(world.client().ask(produce_request(batch(b"a")), 12))
        assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not world.broker.failed.done()
        world.pass_ms(1100)
        write(world, b"b")
        assert world.partition().high_watermark == 2
        assert b"0 0" in world.disk.read("/data/t-0/leader-epoch-checkpoint")
        world.lose_power()
        assert world.partition().high_watermark == 2


def test_all_does_not_wait_for_logs_that_others_keep_asking_for() -> None:
    with serving() as world:
        world.topic("t", 2)
        write(world, b"a", partition=0)
        write(world, b"a", partition=1)
        sync = world.broker.partitions.sync
        busy, quiet = world.partition("t", 0), world.partition("t", 1)
        committed, rounds = type(busy).committed, []

        def ask_again(partition: Partition, offset: int) -> None:
            committed(partition, offset)
            rounds.append(partition)
            if partition is busy and len(rounds) < 1000:
                busy.log.epochs.is_dirty = True
                sync.soon(busy)  # As the next produce with flush.messages=1 does.

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Partition, "committed", ask_again)
            sync.soon(busy)
            world.run(sync.all([quiet]))
            assert rounds.count(quiet) == 1
            assert len(rounds) < 10


def test_logs_that_are_waited_for_do_not_wait_for_all_logs_of_the_regular_sync() -> None:
    with serving() as world:
        world.topic("t", 100)
        for index in range(100):
            write(world, b"a", partition=index)
        committed, synced = Partition.committed, []

        def note(partition: Partition, offset: int) -> None:
            synced.append(partition)
            committed(partition, offset)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Partition, "committed", note)
            world.broker.spawn(world.broker._housekeeping._sync_and_checkpoint())
            world.run(asyncio.sleep(0))  # It has begun.
            world.run(world.broker.partitions.sync.all([world.partition("t", 99)]))
            assert len(synced) < 20


def test_a_worker_syncs_the_name_of_a_new_logs_first_segment() -> None:
    with serving() as world:
        world.topic("t")
        world.pass_ms(50)
        assert world.partition().log.durability.first_name_to_sync() is None


def test_a_name_that_cannot_be_synced_takes_its_directory_offline() -> None:
    with serving(directories=["/data-0", "/data-1"]) as world:
        world.disk.fail("sync_directory", errno.EIO, path_contains="/data-1/t-")
        world.topic("t", 2)
        world.pass_ms(50)
        assert [bool(d.failure) for d in world.broker.directories.all()] == [False, True]


def test_no_roll_after_a_crash_syncs_a_directory_on_the_loop() -> None:
    with serving() as world:
        world.topic("t", 3)
        for index in range(3):
            write(world, b"a", partition=index)
        world.run(world.broker.abort())
        world.disk.kill()
        world.start()
        logs = [world.partition("t", index).log for index in range(3)]
        assert [log.durability.first_name_to_sync() for log in logs] == [None] * 3


class SlowName(HeldWorkers):
    """Workers that hold up the syncs of names, if told so, and nothing else."""

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        if isinstance(getattr(work, "__self__", None), DirectoryToSync):
            return await super().run(work, *arguments)
        return await InlineWorkers.run(self, work, *arguments)


def test_a_stop_waits_for_the_sync_of_a_name_that_a_worker_began() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        world.settle()
        log = world.partition().log
        log.files.is_first_name_durable = False
        world.workers.__class__ = SlowName
        world.workers.is_holding = True
        world.loop.call_soon(world.broker.partitions.sync.name_soon, log)
        world.settle()
        assert world.workers.waiting == 1
        stopping = world.loop.create_task(world.broker.stop())
        world.pass_ms(10_000)
        assert not stopping.done()
        assert not world.disk.exists("/data/.kafka_cleanshutdown")
        world.workers.is_holding = False
        world.until(stopping.done)
        assert world.disk.exists("/data/.kafka_cleanshutdown")
