"""What a start finds in the log directories, against what the cluster knows."""

import errno

import pytest

from ottla.model.errors import Refusal
from ottla.storage.deletion import remove_paths
from tests.unit.broker.requests import write
from tests.unit.broker.serving import World, serving


def kill(world: World) -> None:
    world.run(world.broker.abort())
    world.disk.kill()


def remove_partition(world: World, path: str) -> None:
    remove_paths(world.disk, [path])


def test_what_the_cluster_does_not_know_is_kept_and_not_served() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        world.stop()
        world.disk.make_directory("/data/stranger-0")
        world.start()
        names = world.disk.list("/data")
        assert any(name.startswith("stranger-0.") and name.endswith("-stray") for name in names)
        assert len(world.broker.partitions) == 1


def test_a_removed_partition_is_offline_and_no_new_one(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as world:
        world.topic("t", 2)
        for index in (0, 1):
            write(world, b"a", partition=index)
        for _ in range(2):  # The second start knows it still.
            kill(world)
            remove_partition(world, "/data/t-1")
            world.start()
            world.pass_ms(120_000)  # All checkpoints are written.
            assert "/data/t-1" in caplog.text
            assert not world.disk.exists("/data/t-1")
            with pytest.raises(Refusal, match="KAFKA_STORAGE_ERROR"):
                world.partition("t", 1)
        assert write(world, b"b", partition=0) == 1


def test_a_removed_partition_can_be_deleted_with_its_topic() -> None:
    with serving() as world:
        world.topic("t")
        kill(world)
        remove_partition(world, "/data/t-0")
        world.start()
        world.delete("t")
        world.topic("t")
        world.settle()
        assert write(world, b"a") == 0
        kill(world)
        world.start()
        assert write(world, b"b") == 1


def test_a_partition_that_a_kill_kept_from_being_made_is_made() -> None:
    with serving() as world:
        world.topic("old")
        world.disk.fail("create", errno.ENOSPC, path_contains="/data/t-0/")
        world.topic("t")
        kill(world)
        assert not world.disk.exists("/data/t-0")
        world.start()
        assert write(world, b"a") == 0


def test_after_a_loss_of_power_a_name_that_was_not_synced_is_no_loss() -> None:
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        kill(world)
        remove_partition(world, "/data/t-0")
        world.disk.cut_power()
        if world.disk.exists("/data/t-0"):
            remove_partition(world, "/data/t-0")
        world.start()
        assert write(world, b"b") == 0
