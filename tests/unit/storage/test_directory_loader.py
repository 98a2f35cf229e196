from random import Random

from ottla.model.types import TopicPartition
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.checkpoints import RECOVERY_POINTS
from ottla.storage.deletion import remove_paths
from ottla.storage.directory import LogDirectory
from ottla.storage.directory_loader import load_log, load_logs
from ottla.storage.run_marks import MOUNT_ID
from tests.unit.storage.directories import CONFIG, NAME, OTHER, TOPIC_ID, new_disk, opened
from tests.unit.storage.making import NOW, fill


def test_logs_of_a_killed_broker_survive_a_power_loss_after_the_next_start() -> None:
    for seed in range(20):
        disk = SimulatedDisk(Random(seed))
        fill(opened(disk).create_log(NAME, TOPIC_ID, CONFIG, NOW), 3)
        disk.kill()
        opened(disk)
        disk.cut_power()
        assert disk.is_directory(f"/logs/a/{NAME}")


def test_a_damaged_log_is_named_and_the_others_serve() -> None:
    disk = new_disk()
    directory = opened(disk)
    for name in (NAME, OTHER):
        fill(directory.create_log(name, TOPIC_ID, CONFIG, NOW), 3)
    disk.kill()
    path = f"/logs/a/orders-0/{0:020d}.log"
    disk.flip_bit(path, 90)
    again = opened(disk)
    assert set(again.logs) == {OTHER}
    assert again.damaged[NAME].path == path
    assert again.damaged[NAME].position == 0


def test_a_broken_checkpoint_costs_a_scan_and_no_more() -> None:
    disk = new_disk()
    directory = opened(disk)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    fill(log, 3)
    log.sync()
    directory.checkpoint()
    disk.kill()
    disk.flip_bit(f"/logs/a/{RECOVERY_POINTS}", 0)
    again = opened(disk)
    assert again.logs[NAME].end_offset == 3
    assert [notice for notice in again.notices if RECOVERY_POINTS in notice]


def test_what_was_being_deleted_is_removed_after_a_restart() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    directory.delete_log(NAME, bytes(16), NOW, 50_000)
    disk.kill()
    again = opened(disk)
    assert again.logs == {}
    remove_paths(disk, again.take_deleted(NOW))
    assert not [name for name in disk.list("/logs/a") if name.endswith("-delete")]


def test_other_directories_are_left_alone_and_said_once() -> None:
    disk = new_disk()
    opened(disk).close()
    disk.make_directory("/logs/a/my-stuff")
    directory = opened(disk)
    assert [notice for notice in directory.notices if "my-stuff" in notice]
    assert directory.logs == {}


def test_the_metadata_log_is_opened_by_its_owner_and_always_scanned() -> None:
    disk = new_disk()
    directory = opened(disk)
    metadata = TopicPartition("__cluster_metadata", 0)
    fill(directory.create_log(metadata, bytes(16), CONFIG, NOW), 3)
    directory.close()
    directory = LogDirectory.open(disk, "/logs/a")
    load_logs(directory, lambda _: CONFIG, NOW)
    assert directory.logs == {}
    assert load_log(directory, metadata, CONFIG, NOW).end_offset == 3


def test_a_log_that_ends_before_what_was_committed_is_damaged() -> None:
    disk = new_disk()
    directory = opened(disk)
    fill(directory.create_log(NAME, TOPIC_ID, CONFIG, NOW), 3)
    directory.checkpoint({NAME: 3})
    disk.kill()
    disk.open(f"/logs/a/{NAME}/{0:020d}.log").truncate(0)
    remains = opened(disk)
    assert "all below 3 was" in str(remains.damaged[NAME])
    assert not remains.logs
    disk.kill()
    disk.cut_power()  # Then it may have been lost by right.
    disk.remove(f"/logs/a/{RECOVERY_POINTS}")
    assert opened(disk).logs[NAME].end_offset == 0


def test_what_power_took_is_not_missed_after_a_later_kill() -> None:
    disk = new_disk()
    directory = opened(disk)
    fill(directory.create_log(NAME, TOPIC_ID, CONFIG, NOW), 3)
    directory.create_log(OTHER, TOPIC_ID, CONFIG, NOW)
    directory.checkpoint({NAME: 3, OTHER: 0})
    disk.kill()
    disk.open(f"/logs/a/{NAME}/{0:020d}.log").truncate(0)
    remove_paths(disk, [f"/logs/a/{OTHER}"])
    for name in (RECOVERY_POINTS, MOUNT_ID):  # Of another mount, as after a power cut.
        disk.remove(f"/logs/a/{name}")
    for _ in range(2):
        found = opened(disk)
        assert (found.damaged, found.hosted) == ({}, {(TOPIC_ID, 0)})
        assert list(found.logs) == [NAME]
        disk.kill()
