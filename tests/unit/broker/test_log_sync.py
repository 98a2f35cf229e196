"""Group commit: one round at a time, each for all that gathered during the last."""

import errno

import pytest

from ottla.model.errors import ErrorCode
from tests.unit.broker.requests import batch, only, produce_request, write
from tests.unit.broker.serving import serving


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
        world.broker._housekeeping._sync()
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
