import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import product

import pytest

from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from ottla.storage.producer_snapshot import decode_snapshot
from ottla.storage.producer_state import Duplicate
from tests.unit.storage.making import (
    DIRECTORY,
    NOW,
    SMALL,
    fill,
    find_by_timestamp,
    make_batch,
    make_disk,
    make_marker,
    open_log,
    put,
    read_all,
    remove_deleted,
    retain,
)

BATCH_BYTES = make_batch().size


def code_of(log: Log, batch_size: int) -> ErrorCode:
    with pytest.raises(Refusal) as caught:
        log.stage(make_batch(size=batch_size), 0)
    return caught.value.code


def bases(log: Log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_what_is_staged_has_offsets_but_is_not_there_yet() -> None:
    log = open_log(make_disk())
    assert log.stage(make_batch(3), 0) == 0
    assert log.stage(make_batch(2), 0) == 3
    assert (log.staged_end, log.end_offset, log.size_bytes) == (5, 0, 0)
    assert log.read(0, 1000, end_offset=log.end_offset) is None
    log.flush(NOW)
    assert (log.staged_end, log.end_offset) == (5, 5)
    assert [batch.base_offset for batch in read_all(log)] == [0, 3]


def test_a_log_whose_disk_is_gone_has_nothing_staged_and_can_be_left() -> None:
    log = open_log(make_disk())
    log.stage(make_batch(2), 0)
    log.flush(NOW)
    log.stage(make_batch(3), 0)
    log.abandon()
    assert (log.staged_end, log.end_offset) == (2, 2)
    log.truncate_to(log.end_offset)  # As whoever led it does.
    log.flush(NOW)


def test_all_that_is_staged_goes_out_with_one_write() -> None:
    disk = make_disk()
    log = open_log(disk)
    before = disk.operations
    put(log, *[make_batch() for _ in range(4)])
    assert disk.operations == before + 1


def test_a_flush_of_nothing_is_nothing() -> None:
    disk = make_disk()
    log = open_log(disk)
    before = disk.operations
    log.flush(NOW)
    assert disk.operations == before


def test_batches_get_the_leaders_epoch() -> None:
    log = open_log(make_disk())
    put(log, make_batch(), leader_epoch=4)
    put(log, make_batch(), make_batch(), leader_epoch=6)
    assert [batch.leader_epoch for batch in read_all(log)] == [4, 6, 6]
    assert log.epochs.entries() == [(4, 0), (6, 1)]
    assert log.epoch_end_offset(5) == (4, 1)
    assert log.epoch_end_offset(6) == (6, 3)


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    log = open_log(make_disk())
    assert code_of(log, 1001) == ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.staged_end == 0


def test_a_batch_that_segments_have_become_too_small_for_is_still_a_duplicate() -> None:
    """Refused, a client would send its records again as two smaller batches."""
    log = open_log(make_disk())
    put(log, make_batch(producer_id=1, sequence=0))
    log.config = replace(log.config, segment_bytes=10)
    with pytest.raises(Duplicate) as caught:
        log.stage(make_batch(producer_id=1, sequence=0), 0)
    assert caught.value.base_offset == 0
    for other in (make_batch(producer_id=1, sequence=1), make_batch(producer_id=1, sequence=9)):
        with pytest.raises(Refusal) as refused:
            log.stage(other, 0)
        assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE


def test_segments_roll_within_one_flush() -> None:
    log = open_log(make_disk())
    put(log, *[make_batch() for _ in range(20)])
    assert len(log.segments) > 3
    assert all(segment.size <= 1000 for segment in log.segments)
    assert [batch.base_offset for batch in read_all(log)] == list(range(20))


def test_the_snapshot_at_a_roll_does_not_look_ahead() -> None:
    disk = make_disk()
    log = open_log(disk)
    put(log, *[make_batch(producer_id=1, sequence=number) for number in range(20)])
    for base in bases(log)[1:]:
        producers = decode_snapshot(disk.read(f"{DIRECTORY}/{base:020d}.snapshot"))
        assert producers[1].last_sequence == base - 1


@pytest.mark.parametrize("count", [1, 3, 12, 20])
def test_a_failed_write_takes_everything_back(count: int) -> None:
    disk = make_disk()
    log = open_log(disk)
    put(log, make_batch(producer_id=1, sequence=0), leader_epoch=1)
    size = disk.size(log.segments[0].log_path)
    disk.capacity_bytes = disk.used_bytes + count * BATCH_BYTES - 7
    for number in range(count):
        log.stage(make_batch(producer_id=1, sequence=1 + number), 2)
    with pytest.raises(OSError, match="no space"):
        log.flush(NOW)
    assert (log.end_offset, log.staged_end, bases(log)) == (1, 1, [0])
    assert disk.size(log.segments[0].log_path) == size
    assert log.producers.by_id[1].last_sequence == 0
    assert log.epochs.entries() == [(1, 0)]
    disk.capacity_bytes = 2**40
    assert put(log, make_batch(producer_id=1, sequence=1), leader_epoch=2) == [1]
    assert len(read_all(log)) == 2
    disk.kill()
    assert open_log(disk, clean=False).end_offset == 2


@pytest.mark.parametrize("operation", ["create", "append"])
def test_a_roll_that_fails_is_taken_back(operation: str) -> None:
    disk = make_disk()
    log = open_log(disk)
    fill(log, 3)
    disk.fail(operation, errno.ENOSPC, path_contains=".index")
    for number in range(8):
        log.stage(make_batch(producer_id=1, sequence=number), 0)
    with pytest.raises(OSError, match="simulated"):
        log.flush(NOW)
    assert (log.end_offset, log.staged_end) == (3, 3)
    assert not [name for name in disk.list(DIRECTORY) if name.endswith(".snapshot")]
    fill(log, 10)
    assert [batch.base_offset for batch in read_all(log)] == list(range(13))
    disk.kill()
    again = open_log(disk, clean=False)
    assert (again.end_offset, again.producers.by_id) == (13, {})


def test_a_duplicate_is_told_where_it_is() -> None:
    log = open_log(make_disk())
    put(log, make_batch(3, producer_id=1), make_batch(2, producer_id=1, sequence=3))
    with pytest.raises(Duplicate) as caught:
        log.stage(make_batch(2, producer_id=1, sequence=3), 0)
    assert caught.value.base_offset == 3
    assert log.staged_end == 5


def test_a_duplicate_of_what_is_only_staged_is_known_too() -> None:
    log = open_log(make_disk())
    log.stage(make_batch(producer_id=1), 0)
    with pytest.raises(Duplicate) as caught:
        log.stage(make_batch(producer_id=1), 0)
    assert caught.value.base_offset >= log.end_offset


def test_reading_outside_the_log_is_refused() -> None:
    log = open_log(make_disk())
    fill(log, 10)
    log.advance_log_start(3)
    for offset in (2, 11, -1):
        with pytest.raises(Refusal) as caught:
            log.read(offset, 100, end_offset=10)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(10, 100, end_offset=10) is None


@pytest.mark.parametrize("end_offset", [1, 4, 7, 9])
def test_nothing_at_or_past_the_limit_is_given(end_offset: int) -> None:
    log = open_log(make_disk(), LogConfig())
    put(log, *[make_batch() for _ in range(10)])
    for offset in range(10):
        piece = log.read(offset, 10_000, end_offset=end_offset)
        if offset >= end_offset:
            assert piece is None
        else:
            assert piece is not None
            assert piece.size == (end_offset - offset) * BATCH_BYTES


def test_the_first_batch_is_given_whole_or_not_at_all() -> None:
    log = open_log(make_disk())
    fill(log, 20)
    for offset in (0, 19):
        piece = log.read(offset, 10, end_offset=20)
        assert piece is not None
        assert piece.size == BATCH_BYTES
        assert log.read(offset, 10, end_offset=20, at_least_one=False) is None


def test_replicated_batches_keep_their_offsets_and_epochs() -> None:
    log = open_log(make_disk())
    batches = [
        make_batch(2, base_offset=0, leader_epoch=3),
        make_batch(1, base_offset=7, leader_epoch=5, producer_id=4, sequence=9),
    ]
    log.append(batches, NOW)
    assert [batch.base_offset for batch in read_all(log)] == [0, 7]
    assert log.end_offset == 8
    assert log.epochs.entries() == [(3, 0), (5, 7)]
    assert log.producers.by_id[4].last_sequence == 9


def test_truncation_removes_batches_segments_epochs_and_producers() -> None:
    log = open_log(make_disk())
    for number in range(20):
        put(log, make_batch(producer_id=1, sequence=number), leader_epoch=number // 5)
    log.sync()
    log.high_watermark = 9
    log.truncate_to(7)
    assert log.high_watermark == 7
    assert [batch.base_offset for batch in read_all(log)] == list(range(7))
    assert log.epochs.entries() == [(0, 0), (1, 5)]
    assert log.producers.by_id[1].last_sequence == 6
    assert log.recovery_point == 7
    assert put(log, make_batch(producer_id=1, sequence=7), leader_epoch=9) == [7]


def test_truncation_past_the_end_does_nothing_and_below_the_start_empties() -> None:
    log = open_log(make_disk())
    fill(log, 5)
    log.truncate_to(5)
    assert log.end_offset == 5
    log.start_at(40)
    assert (log.log_start_offset, log.end_offset, read_all(log)) == (40, 40, [])
    fill(log, 2)
    log.truncate_to(30)
    assert (log.log_start_offset, log.end_offset, bases(log)) == (30, 30, [30])


def test_the_start_moves_forward_only_and_not_past_the_end() -> None:
    log = open_log(make_disk())
    fill(log, 5)
    log.advance_log_start(3)
    log.advance_log_start(2)
    assert log.log_start_offset == 3
    with pytest.raises(Refusal) as caught:
        log.advance_log_start(6)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_old_segments_go_and_the_log_starts_later() -> None:
    disk = make_disk()
    log = open_log(disk, replace(SMALL, retention_ms=100))
    fill(log, 20)
    second = bases(log)[1]
    assert retain(log, NOW, log.end_offset) == 0
    log.config = replace(SMALL, retention_bytes=log.size_bytes - log.segments[0].size)
    assert retain(log, NOW, log.end_offset) == 1
    assert log.log_start_offset == second
    assert [name for name in disk.list(DIRECTORY) if name.endswith(".deleted")]
    remove_deleted(log, NOW + 10)
    assert not [name for name in disk.list(DIRECTORY) if name.endswith(".deleted")]


def test_when_all_is_old_an_empty_segment_remains() -> None:
    log = open_log(make_disk(), replace(SMALL, retention_ms=100))
    fill(log, 20)
    assert retain(log, NOW + 1000, log.end_offset) > 1
    assert (log.log_start_offset, log.end_offset, log.size_bytes) == (20, 20, 0)
    fill(log, 1)
    assert log.end_offset == 21


def test_the_last_stable_offset_waits_for_transactions() -> None:
    log = open_log(make_disk())
    fill(log, 2)
    put(log, make_batch(3, producer_id=1, is_transactional=True))
    fill(log, 1)
    assert log.last_stable_offset(6) == 2
    log.stage(make_marker(1, is_abort=True), 0, is_client=False)
    log.flush(NOW)
    assert log.last_stable_offset(6) == 2
    assert log.last_stable_offset(7) == 7
    (aborted,) = log.aborted_transactions(0, 7)
    assert (aborted.producer_id, aborted.first_offset, aborted.last_offset) == (1, 2, 6)
    assert log.aborted_transactions(0, 2) == []


def test_aborted_transactions_are_found_after_a_clean_restart() -> None:
    disk = make_disk()
    log = open_log(disk)
    put(log, make_batch(3, producer_id=1, is_transactional=True))
    fill(log, 12)
    log.stage(make_marker(1, is_abort=True), 0, is_client=False)
    log.flush(NOW)
    fill(log, 12)
    expected = log.aborted_transactions(0, log.end_offset)
    assert len(expected) == 1
    log.close()
    assert open_log(disk).aborted_transactions(0, log.end_offset) == expected


def test_an_open_transaction_is_open_after_a_restart() -> None:
    disk = make_disk()
    log = open_log(disk)
    put(log, make_batch(3, producer_id=1, is_transactional=True))
    log.close()
    assert open_log(disk).last_stable_offset(3) == 0


def test_rolling_by_hand_begins_a_segment_at_the_end() -> None:
    log = open_log(make_disk())
    fill(log, 2)
    log.roll(NOW)
    assert bases(log) == [0, 2]
    fill(log, 1)
    assert len(read_all(log)) == 3


FAR = 3 * 2**31  # Compaction on the leader left nothing between.


@pytest.mark.parametrize("before", [[], [0]])
def test_batches_beyond_a_gap_of_more_than_31_bits_go_into_a_segment_of_their_own(
    before: list[int],
) -> None:
    disk = make_disk()
    log = open_log(disk)
    offsets = [*before, FAR, FAR + 1, 2 * FAR]
    first, *rest = [
        make_batch(base_offset=offset, leader_epoch=1, producer_id=1, sequence=sequence)
        for sequence, offset in enumerate(offsets)
    ]
    log.append([first], NOW)
    log.append(rest, NOW)
    assert bases(log) == [0, FAR, 2 * FAR]
    for clean in (False, True):
        log.close()
        log = open_log(disk, clean=clean)
        assert [batch.base_offset for batch in read_all(log)] == offsets
        assert log.producers.by_id[1].last_sequence == len(offsets) - 1
        found = find_by_timestamp(log, NOW)
        assert found is not None
        assert found.offset == offsets[0]
    log.truncate_to(2 * FAR)
    assert (log.end_offset, bases(log)) == (2 * FAR, [0, FAR])
    assert put(log, make_batch(), leader_epoch=2) == [2 * FAR]
    log.truncate_to(FAR + 1)
    assert put(log, make_batch(), leader_epoch=3) == [FAR + 1]
    assert [batch.base_offset for batch in read_all(log)] == [*before, FAR, FAR + 1]


def test_an_append_far_above_the_base_of_an_emptied_segment_rolls() -> None:
    log = open_log(make_disk())
    log.append([make_batch(base_offset=FAR, leader_epoch=1)], NOW)
    log.truncate_to(FAR)
    assert bases(log) == [0]
    assert put(log, make_batch(), leader_epoch=2) == [FAR]
    assert bases(log) == [0, FAR]


def test_a_write_beyond_a_wide_gap_that_fails_is_taken_back() -> None:
    disk = make_disk()
    log = open_log(disk)
    fill(log, 1)
    disk.fail("append", errno.ENOSPC, path_contains=f"{FAR:020d}.log")
    with pytest.raises(OSError, match="simulated"):
        log.append([make_batch(base_offset=FAR, leader_epoch=1)], NOW)
    assert (log.end_offset, bases(log)) == (1, [0])
    log.append([make_batch(base_offset=FAR, leader_epoch=1)], NOW)
    assert bases(log) == [0, FAR]


def _prepared(seed: int) -> tuple[SimulatedDisk, Log]:
    disk = make_disk(seed)
    log = open_log(disk)
    fill(log, 20)
    log.sync()
    return disk, log


def _changes() -> dict[str, Callable[[Log], None]]:
    return {
        "cut within a segment": lambda log: log.truncate_to(log.segments[-1].base_offset + 1),
        "cut of segments": lambda log: log.truncate_to(8),
        "cut to the start of one": lambda log: log.truncate_to(log.segments[2].base_offset),
        "start elsewhere": lambda log: log.start_at(5),
        "flush that rolls": lambda log: put(log, *[make_batch() for _ in range(9)]) and None,
    }


@pytest.mark.parametrize("name", _changes())
@pytest.mark.parametrize("error", [errno.ENFILE, errno.ENOSPC])
def test_a_change_that_fails_for_now_is_finished_before_the_next_write(
    name: str, error: int
) -> None:
    """Whichever operation fails, or two in a row: none may leave the files as nobody knows them."""
    change = _changes()[name]
    for count, again in product(range(1, 40), (0, 1, 2)):
        disk, log = _prepared(count)
        before = [batch.base_offset for batch in read_all(log)]
        disk.fail_at = (disk.operations + count, error)
        try:
            change(log)
        except OSError:
            pass
        else:
            return  # It has fewer operations than that.
        end = log.end_offset
        if again:
            disk.fail_at = (disk.operations + again, error)
            with suppress(OSError):
                log.append([make_batch(base_offset=end)], NOW)
        disk.fail_at = None
        log.append([make_batch(base_offset=log.end_offset)], NOW)
        expected = [offset for offset in before if log.log_start_offset <= offset < end]
        expected += range(end, log.end_offset)
        assert [batch.base_offset for batch in read_all(log)] == expected, (count, again)
        disk.kill()
        found = open_log(disk, clean=False, log_start_offset=log.log_start_offset)
        assert [batch.base_offset for batch in read_all(found)] == expected, (count, again)
    pytest.fail("more operations than were tried")


def test_what_is_staged_while_a_cut_is_unfinished_is_refused_once() -> None:
    disk, log = _prepared(1)
    disk.fail("rename", errno.ENOSPC)
    with pytest.raises(OSError, match="rename"):
        log.truncate_to(8)
    log.stage(make_batch(), 1)
    with pytest.raises(OSError, match="cut first"):
        log.flush(NOW)
    assert put(log, make_batch(), leader_epoch=1) == [8]
    assert [batch.base_offset for batch in read_all(log)] == list(range(9))


def test_a_staged_offset_is_taken_back_without_a_look_at_the_disk() -> None:
    """A partition is taken offline because its disk cannot be used."""
    disk, log = _prepared(1)
    log.stage(make_batch(), 1)
    disk.rename(DIRECTORY, DIRECTORY + ".gone")
    log.truncate_to(log.end_offset)
    assert log.staged_end == 20


def test_a_log_that_was_cut_by_hand_is_damaged_and_takes_nothing() -> None:
    disk = make_disk()
    fill(log := open_log(disk), 3)
    log.close()
    log = open_log(disk)
    disk.open(log.segments[-1].log_path).truncate(0)
    log.stage(make_batch(), 0)
    with pytest.raises(Damaged, match="shorter"):
        log.flush(NOW)
    assert (log.end_offset, log.staged_end) == (3, 3)


def test_a_transaction_index_that_cannot_be_read_for_now_takes_the_marker_back() -> None:
    disk = make_disk()
    log = open_log(disk)
    put(log, make_batch(producer_id=1, is_transactional=True))
    log.close()
    log = open_log(disk)
    disk.open(log.segments[-1].path(".txnindex"), create=True)
    disk.fail("read", errno.ENFILE, path_contains=".txnindex")
    log.stage(make_marker(1, is_abort=True), 0, is_client=False)
    with pytest.raises(OSError, match="read"):
        log.flush(NOW)
    assert put(log, make_batch()) == [1]
    assert [batch.base_offset for batch in read_all(log)] == [0, 1]
