import errno

import pytest

from ottla.records.batch import Batch
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage import existing_log
from ottla.storage.deletion import remove_paths
from ottla.storage.files import CLEANED
from ottla.storage.open_files import OpenFiles
from ottla.storage.producer_snapshot import snapshots_in
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from ottla.storage.sync_work import DirectoryToSync, Syncable
from tests.unit.storage.making import (
    DIRECTORY,
    NAME,
    NOW,
    SMALL,
    fill,
    make_batch,
    make_disk,
    open_log,
)


def make_segments(*counts: int) -> Segments:
    """One segment for each number, with so many batches of one record."""
    disk = make_disk()
    files = OpenFiles(disk)
    first = Segment(files, DIRECTORY, 0)
    first.activate(disk.open(first.log_path, create=True))
    first.reset()
    segments = Segments(files, DIRECTORY, [first])
    for number, count in enumerate(counts):
        if number:
            segments.roll(segments.active.next_offset, SMALL, NOW)
        for _ in range(count):
            batch = make_batch()
            batch.assign(segments.active.next_offset, 0)
            segments.active.append([batch.placed])
    return segments


def bases(segments: Segments) -> list[int]:
    return [segment.base_offset for segment in segments.all]


def test_power_loss_takes_no_first_segment_and_leaves_a_later_one() -> None:
    """Where a log begins is known by nothing else: the rest would pass for what retention left."""
    left = set()
    for seed in range(60):
        disk = make_disk(seed)
        log = existing_log.open_log(disk, DIRECTORY, NAME, SMALL, clean=False, now=NOW)
        for _ in range(30):
            log.append([make_batch(base_offset=log.end_offset)], NOW)
        disk.cut_power()
        names = [name for name in disk.list(DIRECTORY) if name.endswith(".log")]
        left.add(len(names))
        assert not names or names[0] == "00000000000000000000.log", f"seed {seed}"
    assert len(left) > 1, "some lose the names of later ones"


def test_an_offset_is_in_the_last_segment_that_does_not_begin_after_it() -> None:
    segments = make_segments(3, 2, 1)
    assert bases(segments) == [0, 3, 5]
    assert [segments.index_of(offset) for offset in (0, 2, 3, 4, 5, 99)] == [0, 0, 1, 1, 2, 2]
    assert segments.holding(4).base_offset == 3


def test_only_the_last_is_active() -> None:
    segments = make_segments(3, 2, 1)
    assert [segment.file is not None for segment in segments.all] == [False, False, True]


def test_a_cut_makes_an_earlier_segment_active_again() -> None:
    segments = make_segments(3, 2, 1)
    segments.cut(4)
    assert bases(segments) == [0, 3]
    assert segments.active.next_offset == 4
    assert segments.active.file is not None
    batch = make_batch()
    batch.assign(4, 0)
    segments.active.append([batch.placed])
    assert segments.active.find(4) is not None


def test_a_cut_at_the_beginning_of_a_segment_removes_it() -> None:
    segments = make_segments(3, 2)
    segments.cut(3)
    assert bases(segments) == [0]
    assert segments.active.next_offset == 3


def test_a_cut_that_lacks_a_descriptor_for_what_it_leaves_changes_nothing() -> None:
    """The next attempt would else take one segment more, with all that was acknowledged in it."""
    segments = make_segments(3, 2, 1)
    segments._open_files.close()
    active = segments.active
    segments.disk.fail("open", errno.ENFILE, path_contains="03.log")
    with pytest.raises(OSError, match="open"):
        segments.cut(4)
    assert bases(segments) == [0, 3, 5]
    assert segments.active is active
    assert active.file is not None
    segments.cut(4)
    assert bases(segments) == [0, 3]
    assert segments.active.next_offset == 4


def test_an_oldest_segment_that_cannot_be_renamed_is_kept_for_the_next_attempt() -> None:
    """Else the one after it would go first, and a start would find a hole."""
    segments = make_segments(3, 2, 1)
    segments.disk.fail("rename", errno.ENOSPC, path_contains="00.log")
    steps = segments.drop_oldest(NOW)
    next(steps)
    with pytest.raises(OSError, match="rename"):
        next(steps)
    assert bases(segments) == [0, 3, 5]
    assert len(list(segments.drop_oldest(NOW))) == 2
    assert bases(segments) == [3, 5]


def test_an_oldest_segment_whose_indexes_alone_cannot_be_renamed_is_gone() -> None:
    segments = make_segments(3, 2, 1)
    segments.disk.fail("rename", errno.ENOSPC, path_contains="00.index")
    steps = segments.drop_oldest(NOW)
    next(steps)
    with pytest.raises(OSError, match="rename"):
        next(steps)
    assert bases(segments) == [3, 5]


def test_a_range_of_a_sealed_segment_hears_that_it_is_cut_and_written_again() -> None:
    segments = make_segments(3, 2)
    waiting = segments.read(0, 10_000, 3, True)
    assert waiting is not None
    segments._open_files._files.clear()  # Others were read since: the range alone holds it.
    segments.cut(2)
    assert waiting.file.truncations != waiting.truncations


def test_a_restart_leaves_one_empty_segment() -> None:
    segments = make_segments(3, 2)
    segments.restart(77, SMALL, NOW)
    assert bases(segments) == [77]
    assert segments.size_bytes == 0


def test_the_oldest_is_dropped_under_another_name() -> None:
    segments = make_segments(3, 2)
    steps = segments.drop_oldest(NOW + 10)
    next(steps)
    assert bases(segments) == [0, 3], "the name of the next one is not durable yet"
    next(steps)
    assert bases(segments) == [3]
    assert segments.oldest_offset == 0, "a power cut may still bring it back"
    assert list(steps) == []
    assert segments.oldest_offset == 3


def test_a_dropped_segment_is_not_kept_open_for_the_next_sync() -> None:
    segments = make_segments(2, 2, 1)
    disk = segments.disk
    assert isinstance(disk, SimulatedDisk)
    for step in segments.drop_oldest(NOW):
        step.sync()
    remove_paths(disk, segments.deletion.take_due(NOW))
    assert disk.orphaned_files == 0


def test_no_recovery_point_passes_a_dropped_segment_that_power_could_bring_back() -> None:
    """Its records were never synced: with the old name they would come back torn."""
    segments = make_segments(2, 2, 1)
    dropping = segments.drop_oldest(NOW)
    next(dropping).sync()
    segments.unsynced = [each for each in segments.unsynced if not is_directory(each)]
    next(dropping)  # Renamed, and the directory not synced yet.
    assert any(map(is_directory, segments.unsynced))


def is_directory(work: Syncable) -> bool:
    return isinstance(work, DirectoryToSync)


def test_the_oldest_is_kept_if_the_log_began_anew_or_was_abandoned_meanwhile() -> None:
    segments = make_segments(3, 2)
    steps = segments.drop_oldest(NOW + 10)
    next(steps)
    segments.restart(77, SMALL, NOW)
    assert list(steps) == []
    assert bases(segments) == [77]
    segments = make_segments(3, 2)
    steps = segments.drop_oldest(NOW + 10)
    next(steps)
    segments.abandon()
    assert list(steps) == []
    assert bases(segments) == [0, 3]


def test_a_cleaned_copy_does_not_replace_a_segment_that_was_truncated_and_refilled() -> None:
    segments = make_segments(3, 2)
    source, disk = segments.all[0], segments.disk
    cleaned = Segment(OpenFiles(disk), DIRECTORY, 0, mark=CLEANED)
    cleaned.activate(disk.open(cleaned.log_path, create=True))
    segments.cut(2)
    batch = make_batch()
    batch.assign(2, 9)
    segments.active.append([batch.placed])
    segments.roll(3, SMALL, NOW)
    assert (bases(segments), segments.all[0].size) == ([0, 3], source.size)
    assert not segments.replace([source], cleaned, NOW)
    assert not disk.exists(cleaned.log_path)
    found = segments.all[0].find(2)
    assert found is not None
    assert Batch(segments.all[0].open_file().read(*found)).leader_epoch == 9


@pytest.mark.parametrize("offset", [1, 100])
def test_a_log_that_begins_elsewhere_while_the_oldest_is_dropped_has_that_start(
    offset: int,
) -> None:
    segments = make_segments(3, 2)
    steps = segments.drop_oldest(NOW + 10)
    next(steps)
    next(steps)
    segments.restart(offset, SMALL, NOW)
    assert next(steps, None) is None
    assert segments.oldest_offset == segments.all[0].base_offset == offset


@pytest.mark.parametrize("seed", range(20))
def test_a_producer_snapshot_past_a_cut_does_not_come_back_with_the_power(seed: int) -> None:
    """A clean stop leaves one at the end of the log, in the middle of its last segment."""
    disk = make_disk(seed)
    log = open_log(disk)
    fill(log, 4)
    log.close()
    again = open_log(disk)
    assert snapshots_in(disk.list(DIRECTORY)) == [4]
    again.truncate_to(2)
    disk.cut_power()
    assert snapshots_in(disk.list(DIRECTORY)) == []
