"""Sealed segments are read again, and whatever is not as it was written is found."""

from random import Random

import pytest

from ottla.model.errors import Damaged
from ottla.records.batch import ASSIGNED, LOG_OVERHEAD_BYTES
from ottla.records.record import Record, build_batch
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage import segment_scrub
from ottla.storage.segment_scrub import check_batches

PATH = "/00000000000000000007.log"
OFFSETS = range(7, 7 + 10)


def batch(number: int) -> bytes:
    data = build_batch([Record(0, 0, None, b"x" * 100)])
    ASSIGNED.pack_into(data, 0, OFFSETS.start + number, len(data) - LOG_OVERHEAD_BYTES, 5)
    return bytes(data)


SIZE = len(batch(0))


def disk_with(count: int) -> SimulatedDisk:
    disk = SimulatedDisk(Random(1))
    disk.open(PATH, create=True).append([batch(number) for number in range(count)])
    return disk


def test_what_is_whole_is_read_in_steps() -> None:
    file = disk_with(10).open(PATH)
    assert check_batches(file, 0, 10 * SIZE, OFFSETS, 3 * SIZE) == 3 * SIZE
    assert check_batches(file, 3 * SIZE, 10 * SIZE, OFFSETS, 3 * SIZE - 1) == 6 * SIZE
    assert check_batches(file, 6 * SIZE, 10 * SIZE, OFFSETS, 1 << 20) == 10 * SIZE


def test_a_step_of_small_batches_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_scrub, "BATCHES_MAX", 4)
    assert check_batches(disk_with(10).open(PATH), 0, 10 * SIZE, OFFSETS, 1 << 20) == 4 * SIZE


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("position", range(SIZE))
def test_a_bit_that_changed_is_found(position: int, bit: int) -> None:
    disk = disk_with(4)
    disk.flip_bit(PATH, SIZE + position, bit)
    with pytest.raises(Damaged) as found:
        check_batches(disk.open(PATH), 0, 4 * SIZE, range(7, 11), 1 << 20)
    # Whose epoch went down is told from the next one only.
    assert (found.value.path, found.value.position) in [(PATH, SIZE), (PATH, 2 * SIZE)]


def test_an_end_that_is_missing_is_found() -> None:
    disk = disk_with(3)
    disk.open(PATH).truncate(3 * SIZE - 1)
    with pytest.raises(Damaged, match="no valid record batch"):
        check_batches(disk.open(PATH), 0, 3 * SIZE, OFFSETS, 1 << 20)
