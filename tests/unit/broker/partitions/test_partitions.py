"""Which partitions are hosted, found and refused, as topics and disks come and go."""

import errno

import pytest

from ottla.metadata.image.cluster import TOPIC_RESOURCE
from ottla.metadata.image.delta import ImageDelta
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import TopicPartition
from ottla.protocol.messages import create_topics
from ottla.records.batch import Batch
from ottla.storage.deletion import remove_paths
from tests.unit.broker.requests import (
    batch,
    fetch_request,
    only,
    produce_request,
    values_of,
    write,
)
from tests.unit.broker.serving import World, held_workers, serving

TWO = ["/data-0", "/data-1"]


def refusal(world: World, topic: str, index: int = 0, topic_id: bytes = bytes(16)) -> ErrorCode:
    with pytest.raises(Refusal) as refused:
        world.broker.partitions.led(topic, topic_id, index)
    return refused.value.code


def where(world: World, topic: str, index: int) -> str:
    return world.partition(topic, index).log.directory.rpartition("/")[0]


def test_a_partition_is_found_by_name_and_by_id() -> None:
    with serving() as world:
        topic_id = world.topic("t", 2)
        found = world.broker.partitions.led("t", bytes(16), 1)
        assert found is world.broker.partitions.led("", topic_id, 1)
        assert found.name == TopicPartition("t", 1)
        assert len(world.broker.partitions) == 2


def test_what_is_not_here_is_refused_with_its_own_code() -> None:
    with serving() as world:
        topic_id = world.topic()
        assert refusal(world, "unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert refusal(world, "") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert refusal(world, "t", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert refusal(world, "", 0, b"?" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
        assert refusal(world, "", 5, topic_id) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_made_again_starts_anew() -> None:
    with serving() as world:
        old_id = world.topic()
        write(world, b"old")
        world.delete("t")
        assert refusal(world, "t") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        new_id = world.topic()
        assert refusal(world, "", 0, old_id) == ErrorCode.UNKNOWN_TOPIC_ID
        assert world.partition().topic_id == new_id
        assert write(world, b"new") == 0


def test_deleted_files_go_after_their_delay() -> None:
    with serving() as world:
        world.topic("t", 2, file_delete_delay_ms=5000)
        write(world, b"a")
        world.delete("t")
        assert len([name for name in world.disk.list("/data") if name.endswith("-delete")]) == 2
        world.pass_ms(4000)
        assert len([name for name in world.disk.list("/data") if name.endswith("-delete")]) == 2
        world.pass_ms(2100)
        assert not [name for name in world.disk.list("/data") if name.endswith("-delete")]


def test_a_topic_of_many_partitions_is_deleted_without_a_sync_on_the_loop() -> None:
    with serving() as world:
        world.topic("t", 50, file_delete_delay_ms=0)
        for index in range(50):
            write(world, b"a", partition=index)
        world.pass_ms(1_000)  # Names of new logs are synced.
        with held_workers(world) as done_by_loop:
            topic = world.broker.image.topics_by_name["t"]
            delta = ImageDelta(deleted=[topic])
            world.loop.call_soon(world.broker.partitions.image_changed, delta)
            world.pass_ms(2_000)
            assert done_by_loop == []
            assert len(world.broker.partitions) == 0
        world.pass_ms(2_000)
        assert not [name for name in world.disk.list("/data") if name.startswith("t-")]


def remove_by_hand(world: World, path: str) -> None:
    world.disk.is_observed = True
    remove_paths(world.disk, [path])
    world.disk.is_observed = False


def test_a_deleted_directory_that_was_removed_by_hand_is_passed_over() -> None:
    with serving() as world:
        world.topic("t", 2, file_delete_delay_ms=1000)
        world.topic("u")
        world.delete("t")
        renamed = [name for name in world.disk.list("/data") if name.endswith("-delete")]
        remove_by_hand(world, f"/data/{renamed[0]}")
        world.pass_ms(3_000)
        assert not [name for name in world.disk.list("/data") if name.endswith("-delete")]
        assert write(world, b"a", topic="u") == 0
        assert not world.broker.failed.done()


def test_a_partition_whose_directory_was_removed_by_hand_costs_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving() as world:
        world.topic("t", 3, segment_ms=1000)
        for index in range(3):
            write(world, b"a", partition=index)
        world.pass_ms(2_000)
        remove_by_hand(world, "/data/t-1")
        later = batch(b"b", at=world.broker.env.clock.wall())  # It needs a new segment.
        part = only(world.client().ask(produce_request(later, "t", 1), 12))
        assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        world.settle()
        assert refusal(world, "t", 1) == ErrorCode.KAFKA_STORAGE_ERROR
        assert "t-1 is offline: /data/t-1" in caplog.text
        assert write(world, b"b", partition=0) == 1
        world.pass_ms(60_000)
        assert not world.broker.failed.done()
        world.delete("t")
        world.topic("t", 3)
        assert write(world, b"c", partition=1) == 0
        assert not world.broker.failed.done()


def test_a_segment_that_was_removed_by_hand_costs_its_partition_alone() -> None:
    with serving() as world:
        world.topic("t", 2, segment_ms=1000)
        for _ in range(3):
            for index in range(2):
                write(world, b"a", partition=index)
            world.pass_ms(2_000)
        world.restart()
        remove_by_hand(world, "/data/t-1/00000000000000000001.log")
        answer = world.client().ask(fetch_request(("t", 1, 1), ("t", 0, 1)), 12)
        codes = {p.partition_index: p.error_code for p in answer.responses[0].partitions}
        assert codes == {1: ErrorCode.KAFKA_STORAGE_ERROR, 0: 0}
        assert write(world, b"b", partition=0) == 3
        assert not world.broker.failed.done()


def test_indexes_and_checkpoints_that_were_removed_by_hand_are_written_again() -> None:
    with serving() as world:
        world.topic("t", segment_ms=1000)
        for _ in range(3):
            write(world, b"a")
            world.pass_ms(2_000)
        world.restart()
        for name in ("t-0/00000000000000000001.index", "t-0/00000000000000000001.timeindex"):
            remove_by_hand(world, f"/data/{name}")
        for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            remove_by_hand(world, f"/data/{name}")
        part = only(world.client().ask(fetch_request(("t", 0, 1)), 12))
        assert part.error_code == 0
        assert values_of(part.records)[0] == b"a"
        world.run(world.broker.partitions.checkpoint())
        assert b"t 0 3" in world.disk.read("/data/recovery-point-offset-checkpoint")
        assert b"t 0 3" in world.disk.read("/data/replication-offset-checkpoint")


def test_a_log_directory_that_is_gone_as_a_whole_is_offline_as_a_whole() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 4, segment_ms=1000)
        for index in range(4):
            write(world, b"a", partition=index)
        world.pass_ms(2_000)
        lost = [i for i in range(4) if where(world, "t", i) == "/data-1"]
        for name in list(world.disk.list("/data-1")):
            remove_by_hand(world, f"/data-1/{name}")  # As if another disk were mounted there.
        later = batch(b"b", at=world.broker.env.clock.wall())  # It needs a new segment.
        world.client().ask(produce_request(later, "t", lost[0]), 12)
        world.settle()
        assert [d.path for d in world.broker.directories.online()] == ["/data-0"]
        for index in lost:
            assert refusal(world, "t", index) == ErrorCode.KAFKA_STORAGE_ERROR


def test_partitions_that_are_added_are_hosted_before_the_answer() -> None:
    with serving() as world:
        world.topic("t", 1)
        write(world, b"a")
        world.grow("t", 3)
        assert write(world, b"b", partition=2) == 0
        assert write(world, b"c", partition=0) == 1


def test_a_restart_finds_everything_again() -> None:
    with serving(directories=TWO) as world:
        topic_id = world.topic("t", 4)
        for index in range(4):
            write(world, b"a", b"b", partition=index)
        before = {index: where(world, "t", index) for index in range(4)}
        assert set(before.values()) == set(TWO)
        epoch = world.partition("t", 0).leader_epoch
        for again in (world.restart, world.lose_power):
            if again == world.lose_power:
                world.run(world.broker._housekeeping._sync_and_checkpoint())
            again()
            assert {index: where(world, "t", index) for index in range(4)} == before
            assert world.partition("t", 0).topic_id == topic_id
            assert world.partition("t", 3).high_watermark == 2
            assert world.partition("t", 0).leader_epoch > epoch


def test_configs_reach_the_logs_of_their_topic_only() -> None:
    with serving() as world:
        world.topic("t", 2)
        world.topic("u")
        world.configure("t", "retention.ms", 1234)
        assert world.partition("t", 0).log.config.retention_ms == 1234
        assert world.partition("t", 1).log.config.retention_ms == 1234
        assert world.partition("u", 0).log.config.retention_ms == 7 * 24 * 3_600_000
        assert world.broker.partitions.topic_config("t").retention_ms == 1234
        world.configure("t", "retention.ms", None)
        assert world.partition("t", 0).log.config.retention_ms == 7 * 24 * 3_600_000
        world.grow("t", 3)
        world.configure("t", "flush.messages", 1)
        assert world.partition("t", 2).is_synced_before_reply
        assert (TOPIC_RESOURCE, "t") in world.broker.image.configs


def fail_directory(world: World, path: str) -> None:
    """Have the next write of a partition in `path` fail."""
    index = next(i for i in range(4) if where(world, "t", i) == path)
    world.disk.fail("append", errno.EIO, path_contains=path)
    part = only(world.client().ask(produce_request(batch(b"x"), "t", index), 12))
    assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    world.settle()


def test_a_directory_that_fails_takes_its_partitions_along_and_no_others() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 4)
        lost = [i for i in range(4) if where(world, "t", i) == "/data-1"]
        kept = [i for i in range(4) if i not in lost]
        fail_directory(world, "/data-1")
        for index in lost:
            assert refusal(world, "t", index) == ErrorCode.KAFKA_STORAGE_ERROR
        for index in kept:
            assert write(world, b"a", partition=index) == 0
        assert not world.broker.failed.done()
        world.pass_ms(60_000)
        assert not world.broker.failed.done()


def test_the_controller_hears_of_a_lost_directory() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 4)
        lost = [i for i in range(4) if where(world, "t", i) == "/data-1"]
        [gone] = [d for d in world.broker.directories.all() if d.path == "/data-1"]
        fail_directory(world, "/data-1")
        assert world.broker.directories.identities.offline_ids() == (gone.meta.directory_id,)
        partitions = world.broker.image.topics_by_name["t"].partitions
        for index in range(4):
            assert partitions[index].leader == (-1 if index in lost else 1)
        for index in lost:
            assert refusal(world, "t", index) == ErrorCode.KAFKA_STORAGE_ERROR


def test_new_topics_go_to_the_directories_that_are_left() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 4)
        fail_directory(world, "/data-1")
        world.topic("new", 3)
        world.grow("new", 4)
        for index in range(4):
            assert where(world, "new", index) == "/data-0"
            assert write(world, b"a", topic="new", partition=index) == 0


def test_a_new_topic_on_a_full_disk_is_served_when_there_is_room() -> None:
    with serving() as world:
        world.topic("old")
        world.disk.fail("append", errno.ENOSPC, path_contains="/new-0")
        world.disk.fail("create", errno.ENOSPC, path_contains="/new-0")
        wanted = create_topics.CreatableTopic("new", 1, 1)
        world.client().ask(create_topics.Request(topics=[wanted]))
        assert refusal(world, "new") == ErrorCode.KAFKA_STORAGE_ERROR
        assert not world.broker.failed.done()
        world.disk._failures.clear()
        world.pass_ms(2100)
        assert write(world, b"a", topic="new") == 0
        assert write(world, b"a", topic="old") == 0


def test_a_damaged_log_is_refused_and_the_others_are_served() -> None:
    with serving() as world:
        world.topic("t", 2)
        for index in (0, 1):
            write(world, b"a" * 100, b"b" * 100, partition=index)
            write(world, b"c" * 100, partition=index)
        world.stop()
        world.disk.remove("/data/.kafka_cleanshutdown")
        world.disk.flip_bit("/data/t-1/00000000000000000000.log", 100)
        world.start()
        assert refusal(world, "t", 1) == ErrorCode.KAFKA_STORAGE_ERROR
        assert write(world, b"d", partition=0) == 3


def test_damage_that_is_met_twice_counts_once() -> None:
    with serving(directories=TWO) as world:
        world.topic("t")
        partition = world.partition()
        for _ in range(2):  # By a fetch, and by the scrubber in the same turn.
            world.broker.partitions.damaged(partition, Damaged("t-0", 0, "told so"))
        assert world.broker.partitions.damages == 1
        world.delete("t")
        world.broker.partitions.damaged(partition, Damaged("t-0", 0, "told so"))
        assert world.broker.partitions.damages == 1


def test_a_recreated_partition_syncs_what_its_log_has_not_on_disk() -> None:
    with serving(log_flush_interval_messages=1) as world:
        world.topic("t")
        write(world, b"a")
        partitions, before = world.broker.partitions, world.partition()
        unsynced = Batch(batch(b"b"))
        unsynced.assign(1, before.leader_epoch)
        before.log.append([unsynced], world.broker.env.clock.wall())
        partitions._let_go(before)
        topic = world.broker.image.topics_by_name["t"]
        partitions._update(topic, topic.partitions)
        assert world.partition().high_watermark == 1
        world.settle()
        assert world.partition().log.recovery_point == 2
        assert world.partition().high_watermark == 2


def test_starts_of_logs_that_found_no_room_are_written_down_later() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a", b"b")
        partitions, log = world.broker.partitions, world.partition().log
        log.advance_log_start(1)
        partitions.start_moved(log)
        world.disk.fail("append", errno.ENOSPC, path_contains="log-start-offset")
        world.run(partitions.write_starts())
        world.run(partitions.write_starts())
        assert b"t 0 1" in world.disk.read("/data/log-start-offset-checkpoint")


def test_a_recreated_partition_hides_nothing_that_consumers_have_seen() -> None:
    """Replies wait for the disk since these records were answered: they stay committed."""
    with serving() as world:
        world.topic("t")
        write(world, b"a", b"b")
        world.configure("t", "flush.messages", 1)
        partitions, before = world.broker.partitions, world.partition()
        assert (before.high_watermark, before.log.recovery_point) == (2, 0)
        partitions._let_go(before)
        topic = world.broker.image.topics_by_name["t"]
        partitions._update(topic, topic.partitions)
        assert world.partition() is not before
        assert world.partition().high_watermark == 2
