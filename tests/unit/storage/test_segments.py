from ottla.storage.log import Log
from ottla.storage.open_files import OpenFiles
from ottla.storage.segment import Segment
from ottla.storage.segments import Segments
from tests.unit.storage.making import DIRECTORY, NAME, NOW, SMALL, make_batch, make_disk


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
            segments.roll(SMALL, NOW)
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
        log = Log.open(disk, DIRECTORY, NAME, SMALL, clean=False, now=NOW)
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


def test_a_restart_leaves_one_empty_segment() -> None:
    segments = make_segments(3, 2)
    segments.restart(77, SMALL, NOW)
    assert bases(segments) == [77]
    assert segments.size_bytes == 0


def test_the_oldest_is_dropped_under_another_name() -> None:
    segments = make_segments(3, 2)
    dropped = segments.drop_oldest(NOW + 10)
    assert dropped.base_offset == 0
    assert bases(segments) == [3]
