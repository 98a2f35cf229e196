import errno

import pytest

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import WallTime
from ottla.storage.checkpoints import CLEANED, HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from ottla.storage.deletion import remove_paths
from ottla.storage.directory import DirectoryRefused, LogDirectory
from ottla.storage.hosted_replicas import HOSTED
from ottla.storage.new_log import make_files
from tests.unit.storage.directories import (
    CONFIG,
    META,
    NAME,
    TOPIC_ID,
    new_disk,
    offsets,
    opened,
)
from tests.unit.storage.making import NOW, fill, make_batch, put, read_all


def test_a_directory_is_made_formatted_and_opened_again() -> None:
    disk = new_disk()
    directory = opened(disk)
    log = directory.create_log(NAME, TOPIC_ID, CONFIG, NOW)
    fill(log, 20)
    directory.close(9, {NAME: 17})
    again = opened(disk)
    assert (again.marks.was_clean, again.marks.broker_epoch, again.meta) == (True, 9, META)
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
