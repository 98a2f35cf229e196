from dataclasses import replace

import pytest

from ottla.model.errors import Damaged
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage import existing_log
from ottla.storage.files import file_name
from ottla.storage.log import Log
from ottla.storage.producer_snapshot import snapshots_in
from tests.unit.storage.making import (
    DIRECTORY,
    NOW,
    SMALL,
    fill,
    make_batch,
    make_disk,
    open_log,
    put,
    read_all,
)


def closed(count: int = 20) -> tuple[SimulatedDisk, Log]:
    disk = make_disk()
    log = open_log(disk)
    for number in range(count):
        put(log, make_batch(producer_id=1, sequence=number), leader_epoch=number // 7)
    log.close()
    return disk, log


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_cleanly_closed_log_is_opened_as_it_was() -> None:
    disk, before = closed()
    log = open_log(disk)
    assert bases(log) == bases(before)
    assert (log.log_start_offset, log.end_offset, log.recovery_point) == (0, 20, 20)
    assert log.epochs.entries() == before.epochs.entries()
    assert log.producers.by_id[1].last_sequence == 19
    assert [batch.base_offset for batch in read_all(log)] == list(range(20))
    assert put(log, make_batch(producer_id=1, sequence=20)) == [20]


def test_a_clean_open_reads_little_and_changes_nothing() -> None:
    disk, _ = closed()
    before = disk.operations
    log = open_log(disk)
    log.close()
    assert disk.operations == before


def test_a_tail_that_was_not_closed_cleanly_is_damage() -> None:
    disk, log = closed()
    disk.open(log.segments[-1].log_path).append([b"more"])
    with pytest.raises(Damaged, match="closed cleanly"):
        open_log(disk)


@pytest.mark.parametrize("bit", [4, 36])
@pytest.mark.parametrize("clean", [True, False])
def test_a_batch_that_does_not_begin_where_another_ended_is_damage(bit: int, clean: bool) -> None:
    """No checksum covers its base offset."""
    disk = make_disk()
    config = replace(SMALL, index_interval_bytes=4096)  # All of it is walked through.
    log = open_log(disk, config)
    for _ in range(3):
        put(log, make_batch())
    log.close()
    second = log.segments[-1].size // 3
    disk.flip_bit(log.segments[-1].log_path, second + 7 - bit // 8, bit % 8)
    with pytest.raises(Damaged, match="record batch"):
        open_log(disk, config, clean=clean)


def test_segments_below_the_recovery_point_are_not_scanned() -> None:
    disk, log = closed()
    oldest, point = log.segments[0], log.segments[2].base_offset
    disk.flip_bit(oldest.log_path, 90)
    assert open_log(disk, clean=False, recovery_point=point).end_offset == 20
    with pytest.raises(Damaged):
        open_log(disk, clean=False, recovery_point=0)


def test_leftovers_of_deletions_and_compactions_are_removed() -> None:
    disk, _ = closed()
    for name in (
        "00000000000000000000.log.deleted",
        "00000000000000000005.timeindex.cleaned",
        "00000000000000000099.index",
    ):
        disk.open(f"{DIRECTORY}/{name}", create=True)
    other = "00000000000000000099-0000000003.checkpoint"
    disk.open(f"{DIRECTORY}/{other}", create=True)
    open_log(disk)
    names = disk.list(DIRECTORY)
    assert not [name for name in names if name.endswith((".deleted", ".cleaned"))]
    assert "00000000000000000099.index" not in names
    assert other in names


def test_a_compaction_that_finished_is_put_in_place() -> None:
    disk, log = closed()
    first, third = log.segments[0], log.segments[2]
    swap = disk.open(f"{first.log_path}.swap", create=True)
    for _, batch in [*first.batches(), *log.segments[1].batches()]:
        if batch.base_offset % 2 or batch.next_offset == third.base_offset:
            swap.append([batch.data])
    log = open_log(disk)
    assert bases(log)[:2] == [0, third.base_offset]
    kept = [batch.base_offset for batch in read_all(log) if batch.base_offset < third.base_offset]
    assert kept
    assert all(offset % 2 or offset == third.base_offset - 1 for offset in kept)


def test_a_swap_of_a_split_that_did_not_finish_is_removed() -> None:
    disk, log = closed()
    disk.open(f"{DIRECTORY}/{file_name(0, '.log')}.cleaned", create=True)
    disk.open(f"{log.segments[1].log_path}.swap", create=True)
    assert len(read_all(open_log(disk))) == 20


def test_a_hole_between_segments_after_a_power_cut_ends_the_log() -> None:
    disk, log = closed()
    second, third = log.segments[1], log.segments[2]
    disk.remove(second.log_path)
    opened = open_log(disk, clean=False, recovery_point=second.base_offset, power_lost=True)
    assert opened.end_offset == second.base_offset
    assert not disk.exists(third.log_path)
    assert opened.producers.by_id[1].last_sequence == second.base_offset - 1


def test_a_gap_that_a_cleaner_left_is_no_hole() -> None:
    disk, log = closed()
    second, third = log.segments[1], log.segments[2]
    disk.remove(second.log_path)
    opened = existing_log.open_log(
        disk,
        DIRECTORY,
        log.topic_partition,
        log.config,
        compacted_to=third.base_offset,
        clean=False,
        now=NOW,
        power_lost=True,
    )
    assert opened.end_offset == 20


def test_snapshots_are_kept_for_segments_and_for_the_end() -> None:
    disk, log = closed()
    assert snapshots_in(disk.list(DIRECTORY)) == [*bases(log)[1:], 20]
    stray = disk.open(f"{DIRECTORY}/{file_name(1, '.snapshot')}", create=True)
    stray.append([disk.read(f"{DIRECTORY}/{file_name(20, '.snapshot')}")])
    ahead = disk.open(f"{DIRECTORY}/{file_name(25, '.snapshot')}", create=True)
    ahead.append([disk.read(f"{DIRECTORY}/{file_name(20, '.snapshot')}")])
    open_log(disk, clean=False)
    assert snapshots_in(disk.list(DIRECTORY)) == [*bases(log)[1:], 20]


def test_without_its_last_snapshot_producers_are_replayed() -> None:
    disk, _ = closed()
    disk.remove(f"{DIRECTORY}/{file_name(20, '.snapshot')}")
    assert open_log(disk).producers.by_id[1].last_sequence == 19


def test_a_broken_snapshot_is_not_believed() -> None:
    disk, _ = closed()
    disk.flip_bit(f"{DIRECTORY}/{file_name(20, '.snapshot')}", 20)
    assert open_log(disk).producers.by_id[1].last_sequence == 19


def test_without_any_snapshot_a_clean_log_has_no_producers() -> None:
    disk, _ = closed()
    for offset in snapshots_in(disk.list(DIRECTORY)):
        disk.remove(f"{DIRECTORY}/{file_name(offset, '.snapshot')}")
    assert open_log(disk).producers.by_id == {}


def test_a_log_that_should_start_past_its_end_starts_there_empty() -> None:
    disk, _ = closed()
    log = open_log(disk, log_start_offset=50)
    assert (log.log_start_offset, log.end_offset, log.epochs.entries()) == (50, 50, [])
    assert put(log, make_batch()) == [50]


def test_the_start_is_where_it_was_moved_to() -> None:
    disk, _ = closed()
    log = open_log(disk, log_start_offset=11)
    assert log.log_start_offset == 11
    assert [batch.base_offset for batch in read_all(log)] == list(range(11, 20))


def test_an_empty_directory_is_an_empty_log() -> None:
    disk = make_disk()
    log = open_log(disk, clean=False)
    assert (log.log_start_offset, log.end_offset) == (0, 0)
    log.close()
    again = open_log(disk)
    fill(again, 1)
    assert again.end_offset == 1


def test_idle_producers_are_not_loaded() -> None:
    disk, _ = closed()
    late = make_batch().max_timestamp + SMALL.producer_id_expiration_ms
    assert open_log(disk, now=late).producers.by_id == {}
