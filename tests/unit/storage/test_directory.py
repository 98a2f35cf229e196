import errno
from random import Random

import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import TopicPartition, WallTime
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.checkpoint import MetaProperties, decode_offsets
from ottla.storage.checkpoints import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from ottla.storage.config import LogConfig
from ottla.storage.deletion import remove_paths
from ottla.storage.directory import MOUNT_ID, DirectoryRefused, LogDirectory
from ottla.storage.hosted import HOSTED
from ottla.storage.new_log import make_files
from tests.unit.storage.making import NOW, fill, make_batch, put, read_all

META = MetaProperties("cluster", 1, bytes(16))
NAME = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
TOPIC_ID = bytes(range(16))
CONFIG = LogConfig(segment_bytes=1000)


def new_disk() -> SimulatedDisk:
    return SimulatedDisk(Random(1))


def opened(disk: SimulatedDisk, *, path: str = "/logs/a") -> LogDirectory:
    directory = LogDirectory.open(disk, path, reserve_bytes=1000)
    if directory.meta is None:
        directory.format(META)
    directory.load_logs(lambda _: CONFIG, NOW)
    return directory


def offsets(disk: SimulatedDisk, name: str) -> dict[TopicPartition, int]:
    return decode_offsets(name, disk.read(f"/logs/a/{name}"))


def test_a_directory_is_made_formatted_and_opened_again() -> None:
    disk = new_disk()
    directory = opened(disk)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    fill(log, 20)
    directory.close(9, {NAME: 17})
    again = opened(disk)
    assert (again.was_clean, again.previous_broker_epoch, again.meta) == (True, 9, META)
    assert again.logs[NAME].end_offset == 20
    assert again.topic_ids == {NAME: TOPIC_ID}
    assert again.checkpoints.high_watermarks == {NAME: 17}


def test_a_directory_that_is_in_use_is_refused_with_advice() -> None:
    disk = new_disk()
    directory = opened(disk)
    with pytest.raises(DirectoryRefused, match="in use by another broker: stop that one"):
        LogDirectory.open(disk, "/logs/a")
    directory.close()
    opened(disk)


def test_a_refused_directory_is_not_left_locked() -> None:
    disk = new_disk()
    opened(disk).close()
    with pytest.raises(DirectoryRefused, match="node 1"):
        LogDirectory.open(disk, "/logs/a", node_id=7)
    LogDirectory.open(disk, "/logs/a", node_id=1, cluster_id="cluster")


def test_a_killed_broker_is_not_taken_for_a_clean_one() -> None:
    disk = new_disk()
    opened(disk).close()
    directory = opened(disk)
    fill(directory.create_log(NAME, TOPIC_ID, CONFIG, NOW), 3)
    disk.kill()
    again = opened(disk)
    assert (again.was_clean, again.previous_broker_epoch) == (False, None)
    assert not again.power_was_lost
    assert again.logs[NAME].end_offset == 3
    disk.cut_power()
    assert opened(disk).power_was_lost


def test_logs_of_a_killed_broker_survive_a_power_loss_after_the_next_start() -> None:
    for seed in range(20):
        disk = SimulatedDisk(Random(seed))
        fill(opened(disk).create_log(NAME, TOPIC_ID, CONFIG, NOW), 3)
        disk.kill()
        opened(disk)
        disk.cut_power()
        assert disk.is_directory(f"/logs/a/{NAME}")


def test_a_broker_that_was_killed_while_the_machine_stayed_up_has_lost_nothing() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.note_broker_epoch(7)
    directory.abandon()
    again = opened(disk)
    assert (again.was_clean, again.previous_broker_epoch) == (False, 7)
    again.abandon()
    disk.cut_power()
    assert opened(disk).previous_broker_epoch is None


def test_a_broker_epoch_of_another_mount_of_the_same_boot_is_not_vouched_for() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.note_broker_epoch(7)
    disk.sync_filesystem("/logs/a")
    directory.abandon()
    disk.cut_power()
    again = opened(disk)
    assert disk.exists("/logs/a/ottla.broker-epoch")
    assert (again.previous_broker_epoch, again.power_was_lost) == (None, True)


def test_what_a_failed_disk_wrote_is_not_vouched_for() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.note_broker_epoch(7)
    directory.failed(OSError(errno.EIO, "gone"))
    directory.abandon()
    again = opened(disk)
    assert (again.previous_broker_epoch, again.power_was_lost) == (None, True)


def test_where_no_mount_is_known_a_kill_counts_as_a_power_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = new_disk()
    monkeypatch.setattr(disk, "mount_id", lambda _: "")
    directory = opened(disk)
    directory.note_broker_epoch(7)
    directory.abandon()
    again = opened(disk)
    assert (again.previous_broker_epoch, again.power_was_lost) == (None, True)


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


def test_checkpoints_say_how_far_logs_are_synced_and_where_they_start() -> None:
    disk = new_disk()
    directory = opened(disk)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    fill(log, 20)
    log.sync()
    fill(log, 1)
    log.advance_log_start(2)
    directory.checkpoint({NAME: 21})
    assert offsets(disk, RECOVERY_POINTS) == {NAME: 20}
    assert offsets(disk, LOG_STARTS) == {NAME: 2}
    assert offsets(disk, HIGH_WATERMARKS) == {NAME: 21}
    disk.kill()
    assert opened(disk).logs[NAME].log_start_offset == 2


def test_a_start_at_the_first_segment_needs_no_line() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    directory.checkpoint()
    assert offsets(disk, LOG_STARTS) == {}


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


def test_a_deleted_partition_is_renamed_and_removed_later() -> None:
    disk = new_disk()
    directory = opened(disk)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    fill(log, 3)
    piece = log.read(0, 1000, end_offset=3)
    directory.delete_log(NAME, bytes(16), NOW, 50)
    assert NAME not in directory.logs
    renamed = f"orders-0.{'0' * 32}-delete"
    assert renamed in disk.list("/logs/a")
    remove_paths(disk, directory.take_deleted(WallTime(NOW + 49)))
    assert renamed in disk.list("/logs/a")
    remove_paths(disk, directory.take_deleted(WallTime(NOW + 50)))
    assert renamed not in disk.list("/logs/a")
    assert piece is not None
    assert len(piece.read()) == piece.size


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


def test_a_topic_created_anew_does_not_inherit_the_old_recovery_point() -> None:
    disk = new_disk()
    directory = opened(disk)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    fill(log, 20)
    log.sync()
    log.advance_log_start(11)
    directory.checkpoint({NAME: 20})
    directory.delete_log(NAME, bytes(16), NOW, 0)
    fill(directory.create_log(NAME, bytes(16), CONFIG, NOW), 2)
    disk.kill()
    again = opened(disk)
    assert again.damaged == {}
    assert (again.logs[NAME].log_start_offset, again.logs[NAME].end_offset) == (0, 2)


def test_strays_are_kept_under_another_name() -> None:
    disk = new_disk()
    directory = opened(disk)
    fill(directory.create_log(NAME, TOPIC_ID, CONFIG, NOW), 3)
    directory.set_stray(NAME, bytes(16))
    directory.close()
    again = opened(disk)
    assert again.logs == {}
    assert any("stray" in notice for notice in again.notices)
    assert f"orders-0.{'0' * 32}-stray" in disk.list("/logs/a")


def test_truncation_lowers_what_was_written_down_before_it_cuts() -> None:
    disk = new_disk()
    directory = opened(disk)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    fill(log, 20)
    log.sync()
    directory.checkpoints.cleaned[NAME] = 9
    directory.checkpoint()
    assert offsets(disk, CLEANED) == {NAME: 9}
    with pytest.raises(AssertionError):
        directory.truncate_log(NAME, 4)
    assert directory.lower_recovery_point(NAME, 4)
    assert directory.lower_recovery_point(NAME, 4), "it is not on disk yet"
    directory.checkpoint()
    assert not directory.lower_recovery_point(NAME, 4)
    directory.truncate_log(NAME, 4)
    assert offsets(disk, CLEANED) == {NAME: 4}
    assert directory.checkpoints.cleaned == {NAME: 4}
    assert offsets(disk, RECOVERY_POINTS) == {NAME: 4}
    put(log, make_batch())
    disk.kill()
    again = opened(disk)
    assert again.damaged == {}
    assert len(read_all(again.logs[NAME])) == 5
    assert again.lower_recovery_point(NAME, 0)
    again.checkpoint()
    again.start_log_at(NAME, 100)
    disk.kill()
    assert opened(disk).logs[NAME].end_offset == 100


def test_an_io_error_takes_the_directory_offline() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    refusal = directory.failed(OSError(errno.EIO, "input/output error"))
    assert refusal.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert refusal.message is not None
    assert "/logs/a is offline" in refusal.message
    with pytest.raises(Refusal):
        directory.refuse_if_unwritable()
    directory.close()
    assert not disk.exists("/logs/a/.kafka_cleanshutdown")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_refuses_writes_and_takes_nothing_offline(code: int) -> None:
    directory = opened(new_disk())
    assert directory.failed(OSError(code, "full")).code == ErrorCode.KAFKA_STORAGE_ERROR
    assert directory.failure is None
    with pytest.raises(Refusal, match="reserve"):
        directory.refuse_if_unwritable()
    directory.check_space()
    directory.refuse_if_unwritable()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_shortage_of_descriptors_says_nothing_of_the_disk(code: int) -> None:
    directory = opened(new_disk())
    refusal = directory.failed(OSError(code, "too many open files"))
    assert refusal.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert directory.failure is None
    directory.refuse_if_unwritable()
    directory.failed(OSError(code, "too many open files"), for_good=True)
    assert directory.failure is not None


def test_writes_are_refused_before_the_reserve_is_gone() -> None:
    disk = new_disk()
    directory = opened(disk)
    disk.capacity_bytes = disk.used_bytes + 1000
    directory.check_space()
    directory.refuse_if_unwritable()
    disk.capacity_bytes -= 1
    directory.check_space()
    with pytest.raises(Refusal):
        directory.refuse_if_unwritable()


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
    directory.load_logs(lambda _: CONFIG, NOW)
    assert directory.logs == {}
    assert directory.open_log(metadata, CONFIG, NOW).end_offset == 3


def test_a_log_is_not_cut_below_what_a_file_says_to_be_compacted() -> None:
    """Compaction may be ahead of the recovery point that is on disk: both are lowered before."""
    disk = new_disk()
    directory = opened(disk)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    fill(log, 20)
    directory.checkpoints.cleaned[NAME] = 9
    log.recovery_point = 4
    directory.checkpoint()
    assert directory.lower_recovery_point(NAME, 5)
    assert offsets(disk, CLEANED) == {NAME: 9}
    directory.checkpoint()
    assert not directory.lower_recovery_point(NAME, 5)
    assert offsets(disk, CLEANED) == {NAME: 5}


def test_a_high_watermark_on_disk_is_lowered_before_a_log_is_cut_below_it() -> None:
    """As after an unclean election: else the log would count as damaged after a kill."""
    disk = new_disk()
    directory = opened(disk)
    fill(directory.create_log(NAME, TOPIC_ID, CONFIG, NOW), 20)
    draft = directory.checkpoints.draft_high_watermarks({NAME: 9})
    assert draft is not None
    draft.write()
    directory.checkpoints.written(draft)
    assert not directory.lower_recovery_point(NAME, 9)
    assert directory.lower_recovery_point(NAME, 4)
    directory.checkpoint({NAME: 4})
    assert not directory.lower_recovery_point(NAME, 4)
    directory.truncate_log(NAME, 4)
    disk.kill()
    assert opened(disk).damaged == {}


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


def test_a_log_of_which_a_kill_left_but_the_beginning_is_new() -> None:
    disk = new_disk()
    opened(disk)
    make_files(disk, "/logs/a", NAME, TOPIC_ID)
    disk.remove(f"/logs/a/{NAME}/{0:020d}.log")
    disk.kill()
    assert opened(disk).logs[NAME].end_offset == 0


def test_a_log_is_not_begun_if_that_cannot_be_noted() -> None:
    disk = new_disk()
    directory = opened(disk)
    disk.fail("append", errno.ENOSPC, path_contains=HOSTED)
    with pytest.raises(OSError, match="append"):
        directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    assert not directory.logs
