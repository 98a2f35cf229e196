"""Several log directories: who gets which log, and what the loss of one costs."""

import errno

import pytest

from ottla.broker.partitions.log_directories import NoRoom
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from tests.unit.broker.requests import batch, only, produce_request, write
from tests.unit.broker.serving import World, serving

TWO = ["/data-0", "/data-1"]


def counts(world: World) -> dict[str, int]:
    return {d.path: len(d.logs) for d in world.broker.directories.all()}


def fail(world: World, path: str, error: int = errno.EIO) -> None:
    [directory] = [d for d in world.broker.directories.all() if d.path == path]
    log = next(iter(directory.logs.values()))
    world.broker.directories.write_failed(log, OSError(error, "told so", path))
    world.settle()


def test_a_new_log_goes_where_the_fewest_are() -> None:
    with serving(directories=["/data-0", "/data-1", "/data-2"]) as world:
        world.topic("t", 7)
        assert sorted(counts(world).values()) == [2, 2, 3]


def test_the_metadata_log_may_have_a_directory_of_its_own() -> None:
    with serving(directories=TWO, metadata_log_dir="/meta") as world:
        world.topic("t", 4)
        assert counts(world) == {"/meta": 0, "/data-0": 2, "/data-1": 2}
        assert "__cluster_metadata-0" in world.disk.list("/meta")
        assert len(world.broker.directories.identities.directory_ids()) == 2


def test_the_last_log_directory_ends_the_broker_even_if_the_metadata_lie_elsewhere() -> None:
    with serving(directories=TWO, metadata_log_dir="/meta") as world:
        world.topic("t", 4)
        fail(world, "/data-0")
        assert not world.broker.failed.done()
        fail(world, "/data-1")
        assert isinstance(world.broker.failed.exception(), OSError)


def test_the_directory_of_the_metadata_log_is_needed() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 4)
        fail(world, "/data-0")
        assert isinstance(world.broker.failed.exception(), OSError)


def test_a_full_disk_takes_nothing_offline() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 4)
        fail(world, "/data-1", errno.ENOSPC)
        assert world.broker.directories.is_any_full
        codes = set()
        for index in range(4):
            part = only(world.client().ask(produce_request(batch(b"a"), "t", index), 12))
            codes.add((world.partition("t", index).log.directory[:7], part.error_code))
        assert codes == {("/data-0", 0), ("/data-1", ErrorCode.KAFKA_STORAGE_ERROR)}
        world.pass_ms(1100)
        assert not world.broker.directories.is_any_full
        for index in range(4):
            write(world, b"b", partition=index)


def test_a_directory_that_is_gone_at_the_start_is_offline_and_keeps_its_partitions() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 4)
        for index in range(4):
            write(world, b"a", partition=index)
        lost = [i for i in range(4) if world.partition("t", i).log.directory[:7] == "/data-1"]
        world.stop()
        world.disk.fail("read", errno.EIO, path_contains="/data-1/meta.properties")
        world.start()
        assert world.broker.directories.unopened() == ["/data-1"]
        for index in range(4):
            part = only(world.client().ask(produce_request(batch(b"b"), "t", index), 12))
            assert part.error_code == (ErrorCode.KAFKA_STORAGE_ERROR if index in lost else 0)
        world.topic("new", 2)
        assert write(world, b"n", topic="new", partition=1) == 0
        world.restart()
        for index in lost:
            assert world.partition("t", index).high_watermark == 1


def test_checkpoints_say_how_far_each_log_is() -> None:
    with serving() as world:
        world.topic("t", 2)
        write(world, b"a", b"b", partition=1)
        world.run(world.broker._housekeeping._sync_and_checkpoint())
        assert b"t 1 2" in world.disk.read("/data/recovery-point-offset-checkpoint")
        assert b"t 1 2" in world.disk.read("/data/replication-offset-checkpoint")


def test_a_log_that_cannot_be_made_in_one_directory_is_made_in_another() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 1)
        fewest = "/data-1" if world.partition().log.directory.startswith("/data-0") else "/data-0"
        world.disk.fail("append", errno.ENOSPC, path_contains=f"{fewest}/new-0")
        world.topic("new")
        assert not world.partition("new").log.directory.startswith(fewest)
        assert "new-0" not in world.disk.list(fewest)
        assert write(world, b"a", topic="new") == 0
        world.restart()
        assert world.partition("new").high_watermark == 1


def test_a_full_disk_gets_no_new_logs() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 2)
        fail(world, "/data-1", errno.ENOSPC)
        world.topic("new", 3)
        assert counts(world) == {"/data-0": 4, "/data-1": 1}


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOSPC])
def test_what_finds_no_room_anywhere_is_made_later(error: int) -> None:
    with serving() as world:
        world.disk.fail("create", error, path_contains="/new-0/")
        world.topic("new")
        part = only(world.client().ask(produce_request(batch(b"a"), "new"), 12))
        assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        world.pass_ms(1100)
        assert write(world, b"a", topic="new") == 0


def test_files_of_a_log_that_could_not_be_created_are_not_removed_at_once() -> None:
    """A topic of many partitions on a full disk would stop the loop; a worker removes them."""
    with serving() as world:
        world.disk.fail("create", errno.ENOSPC, path_contains="/new-0/0")
        remove = world.disk.remove
        world.disk.remove = lambda _: pytest.fail("it is renamed first")
        world.topic("new")
        assert any(name.endswith("-delete") for name in world.disk.list("/data"))
        world.disk.remove = remove
        world.pass_ms(70_000)
        assert not any(name.endswith("-delete") for name in world.disk.list("/data"))
        assert write(world, b"a", topic="new") == 0


def test_a_log_that_cannot_be_deleted_is_never_taken_for_a_new_one() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 2)
        for index in (0, 1):
            write(world, b"old", partition=index)
        world.disk.fail("rename", errno.ENOSPC, path_contains="/data-1/t-")
        world.delete("t")
        world.topic("t", 2)
        for index in (0, 1):
            assert write(world, b"new", partition=index) == 0
        world.restart()
        assert [world.partition("t", index).high_watermark for index in (0, 1)] == [1, 1]


@pytest.mark.parametrize("operation", ["open", "read"])
@pytest.mark.parametrize("path", ["/data-1/", "/data-1/t-"])
def test_broker_that_lacks_descriptors_does_not_start_without_a_directory(
    operation: str, path: str
) -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 2)
        for index in (0, 1):
            write(world, b"a", partition=index)
        world.stop()
        world.disk.fail(operation, errno.EMFILE, path_contains=path)
        with pytest.raises(OSError, match="simulated"):
            world.start()
        world.disk._failures.clear()
        world.start()
        assert len(world.broker.directories.online()) == 2


def test_topic_is_deleted_though_no_descriptor_is_left_to_sync_its_directory() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 2)
        world.disk.fail("sync_directory", errno.EMFILE, path_contains="/data-1")
        world.delete("t")
        assert len(world.broker.directories.online()) == 2
        world.topic("t", 2)
        world.pass_ms(120_000)
        world.disk.cut_power()
        world.start()
        assert [write(world, b"new", partition=index) for index in (0, 1)] == [0, 0]


def test_no_log_is_made_where_a_checkpoint_may_name_a_deleted_one() -> None:
    with serving(directories=TWO) as world:
        world.topic("t")
        directories, name = world.broker.directories, TopicPartition("again", 0)
        config, now = world.partition().log.config, world.broker.env.clock.wall()
        first, second = directories.online()
        first.checkpoints.forget(name)
        assert directories.is_stale(name)
        log = directories.log(name, bytes(16), config, now, is_new=True)
        assert directories.of(log) is second
        second.delete_log(name, bytes(8), now, 0)
        with pytest.raises(NoRoom):
            directories.log(name, bytes(16), config, now, is_new=True)


def test_what_could_not_be_removed_for_a_shortage_is_removed_later() -> None:
    with serving() as world:
        world.topic("t", 3)
        world.disk.fail("remove", errno.EMFILE, path_contains="-delete")
        world.delete("t")
        world.pass_ms(70_000)
        assert not [name for name in world.disk.list("/data") if name.startswith("t-")]
        assert world.broker.directories.online()


def kill(world: World) -> None:
    world.run(world.broker.abort())
    world.disk.kill()


def test_the_watermark_of_a_damaged_log_is_kept() -> None:
    """It alone shows at each start that something is missing."""
    with serving() as world:
        world.topic("t")
        write(world, b"a")
        world.pass_ms(10_000)
        kill(world)
        world.disk.open(f"/data/t-0/{0:020d}.log").truncate(0)
        for _ in range(2):
            world.start()
            [directory] = world.broker.directories.all()
            assert list(directory.damaged) == [("t", 0)]
            world.pass_ms(120_000)
            kill(world)
        world.start()
