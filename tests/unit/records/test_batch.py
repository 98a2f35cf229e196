import pytest

from ottla.records.batch import HEADER_BYTES, SEQUENCE_MAX, Batch, walk_batches
from ottla.records.record import Record, build_batch

RECORDS = [Record(5 + i, 1000 + i, b"k", b"v" * i) for i in range(3)]


def batch() -> Batch:
    return Batch(
        build_batch(
            RECORDS, leader_epoch=4, producer_id=9, producer_epoch=2, base_sequence=7, codec=1
        )
    )


def test_the_header_is_read_field_by_field() -> None:
    got = batch()
    assert (got.base_offset, got.last_offset, got.next_offset) == (5, 7, 8)
    assert (got.leader_epoch, got.magic, got.count, got.last_offset_delta) == (4, 2, 3, 2)
    assert (got.base_timestamp, got.max_timestamp) == (1000, 1002)
    assert (got.producer_id, got.producer_epoch, got.base_sequence) == (9, 2, 7)
    assert got.last_sequence == 9
    assert got.codec == 1
    assert got.size == len(got.data)
    assert len(got.body) == got.size - HEADER_BYTES
    assert not got.is_control
    assert not got.is_transactional
    assert not got.is_log_append_time
    assert got.is_valid


def test_assigning_offsets_leaves_the_checksum_right() -> None:
    changed = batch()
    changed.assign(1_000_000, 77)
    again = Batch(changed.data)
    assert (again.base_offset, again.leader_epoch, again.is_valid) == (1_000_000, 77, True)
    assert again.size == changed.size


def test_setting_the_producer_recomputes_the_checksum() -> None:
    changed = batch()
    changed.set_producer(11, 3, 0)
    again = Batch(changed.data)
    assert (again.producer_id, again.producer_epoch, again.base_sequence) == (11, 3, 0)
    assert (again.leader_epoch, again.count, again.is_valid) == (4, 3, True)


def test_stamping_the_append_time_recomputes_the_checksum() -> None:
    changed = batch()
    before = changed.crc
    changed.stamp_append_time(5_000)
    again = Batch(changed.data)
    assert again.is_log_append_time
    assert again.max_timestamp == 5_000
    assert again.is_valid
    assert again.crc != before
    again.clear_append_time()
    assert not Batch(again.data).is_log_append_time
    assert Batch(again.data).is_valid


@pytest.mark.parametrize("position", [21, 40, 61, -1])
def test_a_flipped_bit_is_noticed(position: int) -> None:
    changed = batch()
    data = bytearray(changed.data)
    data[position] ^= 1
    assert not Batch(data).is_valid


def test_sequences_wrap_around() -> None:
    data = build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=SEQUENCE_MAX - 1)
    assert Batch(data).last_sequence == 0


def test_a_batch_without_a_sequence_has_no_last_one_either() -> None:
    assert Batch(build_batch(RECORDS)).last_sequence == -1


def test_parse_takes_the_batch_at_a_position() -> None:
    first, second = build_batch(RECORDS), build_batch([Record(8, 1, None, b"x")])
    both = bytes(first + second)
    assert Batch.parse(both).next_offset == 8
    assert Batch.parse(both, len(first)).base_offset == 8


@pytest.mark.parametrize("length", [HEADER_BYTES, 70])
def test_parse_refuses_a_batch_that_is_not_whole(length: int) -> None:
    with pytest.raises(ValueError, match="of which"):
        Batch.parse(bytes(build_batch(RECORDS))[:length])


def test_parse_refuses_a_length_below_the_header() -> None:
    data = build_batch(RECORDS)
    data[8:12] = (10).to_bytes(4, "big")
    with pytest.raises(ValueError, match="shorter than its header"):
        Batch.parse(data)


def test_a_batch_shows_its_offsets() -> None:
    assert "5-7" in repr(batch())


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_walk_gives_the_whole_batches_and_leaves_a_truncated_one_out(kind: type) -> None:
    one = bytes(batch().data)
    for size, count in ((0, 0), (11, 0), (len(one) - 1, 0), (len(one), 1), (2 * len(one) + 61, 2)):
        found = list(walk_batches(kind((one * 3)[:size])))
        assert [bytes(each.data) for each in found] == [one] * count


@pytest.mark.parametrize("length", [-12, 0, 48])
def test_a_walk_ends_where_no_batch_begins(length: int) -> None:
    one = bytes(batch().data)
    broken = one[:8] + length.to_bytes(4, "big", signed=True) + one[12:]
    assert len(list(walk_batches(one + broken + one))) == 1
