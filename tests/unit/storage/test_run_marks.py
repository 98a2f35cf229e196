import errno

import pytest

from tests.unit.storage.directories import (
    CONFIG,
    NAME,
    TOPIC_ID,
    new_disk,
    opened,
)
from tests.unit.storage.making import NOW, fill


def test_a_killed_broker_is_not_taken_for_a_clean_one() -> None:
    disk = new_disk()
    opened(disk).close()
    directory = opened(disk)
    fill(directory.create_log(NAME, TOPIC_ID, CONFIG, NOW), 3)
    disk.kill()
    again = opened(disk)
    assert (again.marks.was_clean, again.marks.broker_epoch) == (False, None)
    assert not again.marks.power_was_lost
    assert again.logs[NAME].end_offset == 3
    disk.cut_power()
    assert opened(disk).marks.power_was_lost


def test_a_broker_that_was_killed_while_the_machine_stayed_up_has_lost_nothing() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.marks.note_broker_epoch(7)
    directory.abandon()
    again = opened(disk)
    assert (again.marks.was_clean, again.marks.broker_epoch) == (False, 7)
    again.abandon()
    disk.cut_power()
    assert opened(disk).marks.broker_epoch is None


def test_a_broker_epoch_of_another_mount_of_the_same_boot_is_not_vouched_for() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.marks.note_broker_epoch(7)
    disk.sync_filesystem("/logs/a")
    directory.abandon()
    disk.cut_power()
    again = opened(disk)
    assert disk.exists("/logs/a/ottla.broker-epoch")
    assert (again.marks.broker_epoch, again.marks.power_was_lost) == (None, True)


def test_what_a_failed_disk_wrote_is_not_vouched_for() -> None:
    disk = new_disk()
    directory = opened(disk)
    directory.marks.note_broker_epoch(7)
    directory.failed(OSError(errno.EIO, "gone"))
    directory.abandon()
    again = opened(disk)
    assert (again.marks.broker_epoch, again.marks.power_was_lost) == (None, True)


def test_where_no_mount_is_known_a_kill_counts_as_a_power_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = new_disk()
    monkeypatch.setattr(disk, "mount_id", lambda _: "")
    directory = opened(disk)
    directory.marks.note_broker_epoch(7)
    directory.abandon()
    again = opened(disk)
    assert (again.marks.broker_epoch, again.marks.power_was_lost) == (None, True)
