import itertools

import pytest

from ottla.model.errors import Damaged
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.files import INDEX, TIME_INDEX
from ottla.storage.index import OffsetIndex, TimeIndex
from ottla.storage.open_files import OpenFiles
from ottla.storage.segment import BOUNDARIES_MAX, Segment, scan
from tests.unit.storage.making import DIRECTORY, NOW, make_batch, make_disk


def make_segment(disk: SimulatedDisk, base_offset: int = 100) -> Segment:
    segment = Segment(OpenFiles(disk), DIRECTORY, base_offset, index_interval_bytes=300)
    segment.activate(disk.open(segment.log_path, create=True))
    segment.reset()
    return segment


def grow(segment: Segment, count: int, *, records: int = 2, size: int = 50) -> None:
    for _ in range(count):
        batch = make_batch(records, size=size, timestamp=NOW + segment.next_offset)
        batch.assign(segment.next_offset, 0)
        segment.append([batch.placed])


def test_every_offset_is_found_in_its_batch() -> None:
    segment = make_segment(make_disk())
    grow(segment, 40)
    segment.boundaries.clear()
    starts = {batch.base_offset: position for position, batch in segment.batches()}
    for offset in range(100, 180):
        found = segment.find(offset)
        assert found is not None
        assert found[0] == starts[offset - offset % 2]
    assert segment.find(180) is None


def test_indexes_that_are_there_already_are_not_written_again() -> None:
    disk = make_disk()
    segment = make_segment(disk)
    grow(segment, 40)
    segment.write_indexes()
    before = disk.operations
    segment.write_indexes()
    assert disk.operations == before
    grow(segment, 1)
    segment.write_indexes()
    assert disk.operations > before


def test_boundaries_of_the_last_writes_are_remembered_and_bounded() -> None:
    segment = make_segment(make_disk())
    grow(segment, 3 * BOUNDARIES_MAX)
    assert len(segment.boundaries) <= BOUNDARIES_MAX
    starts = {batch.base_offset: position for position, batch in segment.batches()}
    for offset, position in segment.boundaries.items():
        assert starts[offset] == position
    assert max(starts) in segment.boundaries


def test_index_entries_are_made_where_kafka_makes_them() -> None:
    segment = make_segment(make_disk())
    grow(segment, 20)
    assert segment.indexes is not None
    starts = dict(segment.batches())
    entries = segment.indexes.offsets.entries()
    assert entries
    for last_offset, position in entries:
        assert starts[position].last_offset == last_offset
    positions = [0, *(position for _, position in entries)]
    gaps = [b - a for a, b in itertools.pairwise(positions)]
    assert min(gaps) > 300


def test_the_written_indexes_are_complete() -> None:
    disk = make_disk()
    segment = make_segment(disk)
    grow(segment, 20)
    segment.write_indexes()
    offsets = OffsetIndex.decode(disk.read(segment.path(INDEX)), 100, segment.size)
    times = TimeIndex.decode(disk.read(segment.path(TIME_INDEX)), 100)
    assert offsets.entries() == segment.open_indexes().offsets.entries()
    assert times.last == (*segment.latest[:2], -1)
    assert segment.latest.timestamp == NOW + 139


def test_a_sealed_segment_is_read_through_its_files() -> None:
    disk = make_disk()
    segment = make_segment(disk)
    grow(segment, 20)
    segment.write_indexes()
    segment.seal()
    fresh = Segment(OpenFiles(disk), DIRECTORY, 100)
    fresh.size, fresh.next_offset = segment.size, segment.next_offset
    assert fresh.find(121) == segment.find(121)
    assert fresh.latest.timestamp == NOW + 139
    assert fresh.first_timestamp == NOW + 101


@pytest.mark.parametrize("what", ["missing", "torn", "zeros"])
def test_a_bad_index_is_rebuilt_from_the_batches(what: str) -> None:
    disk = make_disk()
    segment = make_segment(disk)
    grow(segment, 20)
    segment.write_indexes()
    good = disk.read(segment.path(INDEX))
    if what == "missing":
        disk.remove(segment.path(INDEX))
    else:
        file = disk.open(segment.path(INDEX))
        file.truncate(0)
        file.append([good[:-3] if what == "torn" else bytes(len(good))])
    fresh = Segment(OpenFiles(disk), DIRECTORY, 100, index_interval_bytes=300)
    fresh.size, fresh.next_offset = segment.size, segment.next_offset
    assert fresh.find(131) == segment.find(131)
    assert disk.read(segment.path(INDEX)) == good


def test_a_walk_into_garbage_is_damage_with_its_place() -> None:
    disk = make_disk()
    segment = make_segment(disk)
    grow(segment, 3)
    segment.boundaries.clear()
    second = [position for position, _ in segment.batches()][1]
    disk.flip_bit(segment.log_path, second + 16)
    with pytest.raises(Damaged) as caught:
        segment.find(103)
    assert (caught.value.path, caught.value.position) == (segment.log_path, second)


def test_reading_stops_at_the_limit_and_gives_one_whole_batch() -> None:
    segment = make_segment(make_disk())
    grow(segment, 10)
    size = segment.size // 10
    whole = segment.read(100, 10_000, 120, True)
    assert whole is not None
    assert (whole.position, whole.size) == (0, segment.size)
    limited = segment.read(102, 10_000, 106, True)
    assert limited is not None
    assert (limited.position, limited.size) == (size, 2 * size)
    one = segment.read(103, 1, 120, True)
    assert one is not None
    assert one.size == size
    assert segment.read(103, 1, 120, False) is None
    cut = segment.read(102, size + 5, 120, True)
    assert cut is not None
    assert cut.size == size + 5


def test_truncation_forgets_indexes_and_timestamps() -> None:
    segment = make_segment(make_disk())
    grow(segment, 20)
    segment.truncate_to(111)
    assert segment.size == segment.open_file().size
    assert [batch.base_offset for _, batch in segment.batches()] == list(range(100, 110, 2))
    assert segment.latest.timestamp == NOW + 109
    assert segment.find(110) is None
    segment.truncate_to(100)
    assert (segment.size, segment.latest.timestamp, segment.first_timestamp) == (0, -1, -1)


def test_the_fuller_index_says_how_many_entries_are_left() -> None:
    segment = make_segment(make_disk())
    assert segment.index_entries_left(120) == 10
    grow(segment, 40)
    used = segment.open_indexes().times.size_bytes
    assert used == 12 * 19
    assert segment.index_entries_left(used) == 0
    assert segment.index_entries_left(used + 12 * 3) == 3


def test_scanning_goes_over_batches_larger_than_a_chunk() -> None:
    disk = make_disk()
    segment = make_segment(disk)
    for size in (10, 3_000_000, 20, 1_000_000):
        batch = make_batch(size=size)
        batch.assign(segment.next_offset, 0)
        segment.append([batch.placed])
    found = list(scan(segment.open_file(), 0, segment.size))
    assert [batch.base_offset for _, batch in found] == [100, 101, 102, 103]
    assert all(batch.is_valid for _, batch in found)


def test_scanning_stops_at_a_batch_that_is_not_whole() -> None:
    segment = make_segment(make_disk())
    grow(segment, 3)
    assert len(list(scan(segment.open_file(), 0, segment.size - 1))) == 2


def test_a_transaction_index_that_cannot_be_right_is_damage() -> None:
    disk = make_disk()
    segment = Segment(OpenFiles(disk), DIRECTORY, 0)
    disk.open(segment.path(".txnindex"), create=True).append([b"half an entry"])
    with pytest.raises(Damaged, match="txnindex"):
        segment.transactions()
