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
    draft = checkpoints.draft_high_watermarks({NAME: 4})
    assert draft is not None
    draft.write()
    assert checkpoints.draft_high_watermarks({NAME: 4}) is None
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
    checkpoints.cleaned = {NAME: 7, OTHER: 8}
    checkpoints.write(None)
    assert disk.read(f"/data/{CLEANED}") == b"0\n2\nt 0 7\nt 1 8\n"
    checkpoints.forget(NAME)
    checkpoints.write(None)
    disk.cut_power()
    assert Checkpoints(disk, "/data").cleaned == {OTHER: 8}


def test_a_broken_file_is_told_and_taken_as_empty() -> None:
    disk = make_disk()
    disk.open(f"/data/{RECOVERY_POINTS}", create=True).append([b"0\n1\ngarbage\n"])
    checkpoints = Checkpoints(disk, "/data")
    assert checkpoints.recovery_points == {}
    assert len(checkpoints.notices) == 1
    assert HIGH_WATERMARKS not in checkpoints.notices[0]


def test_offsets_are_promised_until_a_lower_one_is_on_disk() -> None:
    disk = make_disk()
    checkpoints = Checkpoints(disk, "/data")
    checkpoints.recovery_points = {NAME: 5}
    checkpoints.write({})
    assert not checkpoints.may_promise(NAME, 5)
    assert checkpoints.may_promise(NAME, 4)
    checkpoints.recovery_points = {NAME: 2}
    low = checkpoints.draft({})
    assert checkpoints.may_promise(NAME, 4), "the draft is not written yet"
    low.write()
    checkpoints.written(low)
    assert not checkpoints.may_promise(NAME, 2)
    checkpoints.recovery_points = {NAME: 9}
    high = checkpoints.draft({})  # It fails, or is still under way.
    assert checkpoints.may_promise(NAME, 8)
    assert high.files[RECOVERY_POINTS] == {NAME: 9}
    checkpoints.recovery_points = {NAME: 3}
    checkpoints.write({})
    assert not checkpoints.may_promise(NAME, 3)


def test_a_log_that_is_forgotten_after_a_draft_was_made_stays_stale() -> None:
    disk = make_disk()
    checkpoints = Checkpoints(disk, "/data")
    checkpoints.recovery_points = {NAME: 5, OTHER: 6}
    checkpoints.forget(OTHER)
    draft = checkpoints.draft({})
    checkpoints.forget(NAME)
    draft.write()
    checkpoints.written(draft)
    assert checkpoints.is_stale(NAME)
    assert not checkpoints.is_stale(OTHER)


def test_a_draft_does_not_change_while_a_worker_writes_it() -> None:
    checkpoints = Checkpoints(make_disk(), "/data")
    checkpoints.recovery_points, checkpoints.log_starts = {NAME: 5}, {NAME: 2}
    checkpoints.cleaned = {NAME: 1}
    whole = checkpoints.draft({NAME: 4})
    marks = checkpoints.draft_high_watermarks({NAME: 5})
    assert marks is not None
    checkpoints.forget(NAME)
    assert all(offsets.keys() == {NAME} for offsets in whole.files.values())
    assert marks.files == {HIGH_WATERMARKS: {NAME: 5}}
