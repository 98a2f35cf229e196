from ottla.model.types import TopicPartition
from ottla.storage.checkpoints import CLEANED, HIGH_WATERMARKS, RECOVERY_POINTS, Checkpoints
from tests.unit.storage.making import make_disk

NAME = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def test_what_is_written_survives_power() -> None:
    disk = make_disk()
    checkpoints = Checkpoints(disk, "/data")
    checkpoints.recovery_points = {NAME: 5}
    checkpoints.log_starts = {NAME: 2}
    checkpoints.write({NAME: 4})
    disk.cut_power()
    again = Checkpoints(disk, "/data")
    assert (again.recovery_points, again.log_starts) == ({NAME: 5}, {NAME: 2})
    assert again.high_watermarks == {NAME: 4}


def test_watermarks_alone_survive_a_kill_and_cost_nothing_when_nothing_changed() -> None:
    disk = make_disk()
    checkpoints = Checkpoints(disk, "/data")
    checkpoints.note_high_watermarks({NAME: 4})
    before = disk.operations
    checkpoints.note_high_watermarks({NAME: 4})
    assert disk.operations == before
    disk.kill()
    assert Checkpoints(disk, "/data").high_watermarks == {NAME: 4}


def test_a_forgotten_log_is_stale_until_all_files_are_written() -> None:
    disk = make_disk()
    checkpoints = Checkpoints(disk, "/data")
    checkpoints.recovery_points = {NAME: 5, OTHER: 6}
    checkpoints.write({NAME: 4, OTHER: 6})
    checkpoints.forget(NAME)
    assert checkpoints.is_stale(NAME)
    checkpoints.write(None)
    assert checkpoints.is_stale(NAME)
    checkpoints.write(checkpoints.high_watermarks)
    assert not checkpoints.is_stale(NAME)
    again = Checkpoints(disk, "/data")
    assert (again.recovery_points, again.high_watermarks) == ({OTHER: 6}, {OTHER: 6})


def test_how_far_a_log_was_cleaned_survives_power_and_goes_with_the_log() -> None:
    disk = make_disk()
    checkpoints = Checkpoints(disk, "/data")
    checkpoints.note_cleaned(NAME, 7)
    checkpoints.note_cleaned(OTHER, 8)
    assert disk.read(f"/data/{CLEANED}") == b"0\n2\nt 0 7\nt 1 8\n"
    checkpoints.forget(NAME)
    disk.cut_power()
    assert Checkpoints(disk, "/data").cleaned == {OTHER: 8}


def test_a_broken_file_is_told_and_taken_as_empty() -> None:
    disk = make_disk()
    disk.open(f"/data/{RECOVERY_POINTS}", create=True).append([b"0\n1\ngarbage\n"])
    checkpoints = Checkpoints(disk, "/data")
    assert checkpoints.recovery_points == {}
    assert len(checkpoints.notices) == 1
    assert HIGH_WATERMARKS not in checkpoints.notices[0]
