"""What happens without anybody asking: retention, checkpoints, expiry, disks that are looked at."""

import errno
import logging

import pytest

from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.protocol.messages import delete_records
from ottla.storage.retention import delete_old_segments
from tests.unit.broker.requests import batch, fetch_request, only, produce_request, values_of, write
from tests.unit.broker.serving import World, held_workers, serving

HOUR_MS = 3_600_000


def segments(world: World) -> int:
    return len([name for name in world.disk.list("/data/t-0") if name.endswith(".log")])


def start_offset(world: World) -> int:
    return world.partition().log.log_start_offset


def test_old_segments_go_as_soon_as_retention_is_shorter() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        world.topic("t", segment_bytes=1 << 20, segment_ms=1000)
        for _ in range(3):
            write(world, b"x")
            world.pass_ms(2000)
        assert segments(world) == 3
        assert start_offset(world) == 0
        world.configure("t", "retention.ms", 1)
        world.pass_ms(31_000)
        assert start_offset(world) == 3
        part = only(world.client().ask(fetch_request(("t", 0, 3)), 12))
        assert (part.error_code, part.log_start_offset) == (0, 3)


def test_a_log_that_is_too_large_loses_its_oldest_segments() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        world.topic("t", segment_ms=1000, retention_bytes=3000)
        for _ in range(6):
            write(world, b"x" * 1000)
            world.pass_ms(2000)
        world.pass_ms(31_000)
        assert start_offset(world) == 3
        part = only(world.client().ask(fetch_request(("t", 0, 5)), 12))
        assert len(values_of(part.records)) == 1


def test_retention_and_removal_of_many_logs_leave_the_disk_to_workers() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        world.topic("t", 20, segment_ms=1000, retention_ms=1000, file_delete_delay_ms=0)
        for index in range(20):
            write(world, b"x", partition=index)
        world.run(world.broker._housekeeping._sync_and_checkpoint())
        with held_workers(world) as done_by_loop:
            world.pass_ms(35_000)
            assert done_by_loop == []
            assert start_offset(world) == 0, "a name has to be durable before the older one goes"
        world.pass_ms(3_000)
        assert {p.log.log_start_offset for p in world.broker.partitions.all()} == {1}
        for index in range(20):
            names = world.disk.list(f"/data/t-{index}")
            assert not [name for name in names if name.endswith(".deleted")]


def test_a_log_start_is_written_down_until_the_removal_below_it_is_durable() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        world.topic("t", segment_ms=1000)
        for _ in range(3):
            write(world, b"x")
            world.pass_ms(2000)
        world.partition().log.advance_log_start(1)
        world.run(world.broker.partitions.checkpoint())
        steps = delete_old_segments(world.partition().log, world.broker.env.clock.wall(), 3)
        next(steps).sync()
        next(steps)  # Renamed, and not synced.
        assert world.partition().log.segments[0].base_offset == 1
        world.run(world.broker.partitions.checkpoint())
        assert b"t 0 1" in world.disk.read("/data/log-start-offset-checkpoint")
        for step in steps:
            step.sync()
        world.run(world.broker.partitions.checkpoint())
        assert b"t 0 1" not in world.disk.read("/data/log-start-offset-checkpoint")


def test_records_are_deleted_durably_though_the_removal_below_them_is_not() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        world.topic("t", segment_ms=1000)
        for _ in range(3):
            write(world, b"x")
            world.pass_ms(2000)
        log = world.partition().log
        log.advance_log_start(1)
        steps = delete_old_segments(log, world.broker.env.clock.wall(), 3)
        next(steps).sync()
        next(steps)  # Renamed, and not synced: a power cut may bring it back.
        part = delete_records.DeleteRecordsPartition(0, log.segments[0].base_offset)
        topic = delete_records.DeleteRecordsTopic("t", [part])
        answer = world.client().ask(delete_records.Request([topic], 1000), 2)
        assert only(answer).error_code == 0
        assert b"t 0 1" in world.disk.read("/data/log-start-offset-checkpoint")


def test_deleted_segments_free_their_disk_after_the_delay() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        world.topic("t", segment_ms=1000, retention_ms=1000, file_delete_delay_ms=60_000)
        write(world, b"x")
        world.pass_ms(35_000)
        assert start_offset(world) == 1
        deleted = [name for name in world.disk.list("/data/t-0") if name.endswith(".deleted")]
        assert deleted
        world.pass_ms(65_000)
        deleted = [name for name in world.disk.list("/data/t-0") if name.endswith(".deleted")]
        assert not deleted


def test_a_fetch_keeps_what_it_sends_though_retention_removes_it() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        world.topic("t", segment_ms=1000, retention_ms=1000, file_delete_delay_ms=0)
        write(world, b"kept")
        held = world.partition().log.read(0, 1000, end_offset=1)
        world.pass_ms(70_000)
        assert start_offset(world) == 1
        assert values_of(held.read()) == [b"kept"]


def test_logs_are_synced_and_checkpointed_in_time() -> None:
    with serving(log_flush_offset_checkpoint_interval_ms=5000) as world:
        world.topic()
        write(world, b"a")
        world.pass_ms(40_000)
        assert world.partition().log.recovery_point == 1
        assert b"t 0 1" in world.disk.read("/data/recovery-point-offset-checkpoint")


def test_producers_that_are_silent_for_too_long_are_forgotten() -> None:
    settings = {
        "producer_id_expiration_ms": 10_000,
        "producer_id_expiration_check_interval_ms": 1000,
    }
    with serving(**settings) as world:
        world.topic()
        write(world, b"a", producer_id=7, producer_epoch=0, base_sequence=0)
        assert 7 in world.partition().log.producers.by_id
        world.pass_ms(12_000)
        assert 7 not in world.partition().log.producers.by_id


def test_a_disk_that_cannot_remove_its_files_is_lost() -> None:
    with serving(directories=["/data-0", "/data-1"], log_retention_check_interval_ms=1000) as world:
        world.topic("t", 4, segment_ms=1000, retention_ms=1000)
        lost = [i for i in range(4) if world.partition("t", i).log.directory[:7] == "/data-1"]
        for index in range(4):
            write(world, b"x", partition=index)
        world.disk.fail("rename", errno.EIO, path_contains="/data-1/t-")
        world.pass_ms(40_000)
        assert [d.path for d in world.broker.directories.online()] == ["/data-0"]
        for index in range(4):
            if index not in lost:
                assert write(world, b"y", partition=index) == 1
        assert not world.broker.failed.done()


def test_what_fails_once_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with serving() as world:
        world.topic()
        world.disk.capacity_bytes = world.disk.used_bytes + 10
        world.pass_ms(1100)
        assert "nearly full" in caplog.text
        world.disk.capacity_bytes = 1 << 40
        world.pass_ms(1100)
        assert "has room again" in caplog.text
        part = only(world.client().ask(produce_request(batch(b"a")), 12))
        assert part.error_code == 0


def test_nothing_goes_on_after_the_stop() -> None:
    with serving() as world:
        world.topic()
        world.stop()
        before = world.disk.operations
        world.pass_ms(HOUR_MS)
        assert world.disk.operations == before
        world.start()


def test_damage_that_retention_meets_costs_its_own_partition() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        for topic in ("t", "u"):
            world.topic(topic, segment_ms=1000, retention_ms=1000)
            write(world, b"x", topic=topic)
        log = world.partition("t").log

        def meet_damage(*_: object) -> None:
            raise Damaged(log.directory, 0, "told so")

        log.files.drop_oldest = meet_damage
        world.pass_ms(40_000)
        assert world.partition("u").log.log_start_offset == 1, "the others are looked after"
        with pytest.raises(Refusal) as refused:
            world.partition("t")
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert not world.broker.failed.done()
