"""Which partitions are hosted, found and refused, as topics and disks come and go."""

import errno

import pytest

from ottla.metadata.cluster import TOPIC_RESOURCE
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import TopicPartition
from ottla.protocol.messages import create_topics
from tests.unit.broker.requests import batch, only, produce_request, write
from tests.unit.broker.serving import World, serving

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
        assert world.broker.directories.offline_ids() == (gone.meta.directory_id,)
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
