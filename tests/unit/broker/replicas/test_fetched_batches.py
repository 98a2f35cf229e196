from ottla.broker.replicas.fetched_batches import may_cut, whole_batches
from ottla.records.batch import Batch
from tests.unit.broker.following import batch
from tests.unit.storage.making import NOW, make_disk, open_log


def taken(data: bytes, offset: int = 0, epoch: int = 0, high_watermark: int = 0) -> list[int]:
    batches = whole_batches(data, offset, epoch_max=epoch, high_watermark=high_watermark)
    return [b.base_offset for b in batches]


def test_only_whole_and_right_batches_are_taken() -> None:
    first, second = batch(0, 3), batch(3)
    assert taken(first + second + batch(4)[:30]) == [0, 3]
    assert taken(first + second, 3) == [3]
    damaged = bytearray(second)
    damaged[-1] ^= 1
    assert taken(first + bytes(damaged)) == [0]
    assert taken(b"") == []


def test_batches_are_taken_up_to_the_first_of_a_newer_epoch_than_the_leaders() -> None:
    data = batch(0, epoch=1) + batch(1, epoch=2) + batch(2, epoch=3) + batch(3, epoch=2)
    assert taken(data, epoch=2) == [0, 1]
    assert taken(data, epoch=3) == [0, 1, 2, 3]
    assert taken(data, epoch=0) == []


def test_where_a_batch_begins_before_its_predecessor_ends_neither_is_taken() -> None:
    assert taken(batch(0) + batch(1, 3) + batch(3), high_watermark=9) == [0]
    assert taken(batch(0) + batch(1 << 20) + batch(2), high_watermark=1 << 21) == [0]
    assert taken(batch(5) + batch(0), high_watermark=9) == []


def test_a_gap_is_taken_only_where_compaction_can_have_left_it() -> None:
    assert taken(batch(0) + batch(7) + batch(8), high_watermark=7) == [0, 7, 8]
    assert taken(batch(0) + batch(1 << 20), high_watermark=7) == [0]
    assert taken(batch(3), 1, high_watermark=3) == [3]
    assert taken(batch(3), 1, high_watermark=2) == []


def test_after_a_batch_that_nobody_asked_for_no_gap_is_taken() -> None:
    assert taken(batch(32, 64) + batch(192), 128, high_watermark=200) == []
    assert taken(batch(32, 64) + batch(128), 128, high_watermark=200) == [128]


def test_what_is_committed_is_not_cut_for_a_batch_that_says_to_begin_there() -> None:
    log = open_log(make_disk())
    log.append([Batch(bytearray(batch(offset, 2))) for offset in (0, 2, 4)], NOW)
    assert not may_cut(log, 2, committed=6)
    assert may_cut(log, 4, committed=4)
    log.truncate_to(5)  # Inside of a batch: nothing of it is left.
    assert may_cut(log, 4, committed=5)
    assert not may_cut(log, 3, committed=5)
    log.advance_log_start(1)
    assert not may_cut(log, 0, committed=5)
    log.start_at(9)
    assert may_cut(log, 7, committed=9)
