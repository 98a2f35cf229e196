import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.storage.producer_snapshot import (
    BadSnapshot,
    decode_snapshot,
    encode_snapshot,
    read_newest_snapshot,
    snapshots_in,
    write_snapshot,
)
from ottla.storage.producer_state import Appended, Producer
from tests.unit.storage.making import DIRECTORY, make_disk

ONE = Producer(3, 4, 5, -1, (Appended(6, 7, 2, 5),))
PRODUCERS = st.dictionaries(
    st.integers(0, 2**62),
    st.builds(
        Producer,
        epoch=st.integers(0, 2**15 - 1),
        coordinator_epoch=st.integers(-1, 2**31 - 1),
        last_timestamp=st.just(5),
        transaction_start=st.integers(-1, 2**62),
        batches=st.just(())
        | st.builds(
            Appended,
            last_sequence=st.integers(0, 2**31 - 1),
            last_offset=st.integers(0, 2**62),
            offset_delta=st.integers(0, 100),
            timestamp=st.just(5),
        ).map(lambda batch: (batch,)),
    ),
    max_size=5,
)


@given(PRODUCERS)
def test_a_snapshot_round_trips(producers: dict[int, Producer]) -> None:
    assert decode_snapshot(encode_snapshot(producers)) == producers


def test_only_the_last_batch_of_a_producer_is_kept() -> None:
    many = Producer(0, -1, 9, -1, (Appended(1, 1, 0, 8), Appended(2, 2, 0, 9)))
    assert decode_snapshot(encode_snapshot({1: many}))[1].batches == (Appended(2, 2, 0, 9),)


def test_the_bytes_are_kafkas() -> None:
    data = encode_snapshot({1: ONE})
    assert data[:2] == b"\x00\x01"
    assert data[6:10] == b"\x00\x00\x00\x01"
    assert len(data) == 10 + 46
    assert data[10:].hex() == (
        "0000000000000001"
        "0003"
        "00000006"
        "0000000000000007"
        "00000002"
        "0000000000000005"
        "00000004"
        "ffffffffffffffff"
    )


@pytest.mark.parametrize("position", [0, 3, 8, 20, -1])
def test_a_flipped_bit_is_noticed(position: int) -> None:
    data = bytearray(encode_snapshot({1: ONE}))
    data[position] ^= 1
    with pytest.raises(BadSnapshot):
        decode_snapshot(bytes(data))


@pytest.mark.parametrize("size", [0, 5, 30])
def test_a_torn_snapshot_is_noticed(size: int) -> None:
    with pytest.raises(BadSnapshot):
        decode_snapshot(encode_snapshot({1: ONE})[:size])


def test_the_newest_whole_one_is_read_and_broken_ones_go() -> None:
    disk = make_disk()
    for offset in (10, 20, 30):
        write_snapshot(disk, DIRECTORY, offset, {offset: ONE})
    disk.flip_bit(f"{DIRECTORY}/{20:020d}.snapshot", 15)
    assert snapshots_in(disk.list(DIRECTORY)) == [10, 20, 30]
    assert read_newest_snapshot(disk, DIRECTORY, [10, 20]) == (10, {10: ONE})
    assert snapshots_in(disk.list(DIRECTORY)) == [10, 30]
    assert read_newest_snapshot(disk, DIRECTORY, []) is None
