import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.record import read_varint, write_varint
from ottla.spark.arrow.varints import TooLong, read_varints


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50))
def test_vectorised_varints_equal_the_scalar_reader(numbers: list[int]) -> None:
    data = bytearray()
    starts = []
    for number in numbers:
        starts.append(len(data))
        write_varint(number, data)
    values, ends = read_varints(np.frombuffer(data, np.uint8), np.array(starts, np.int64))
    assert values.tolist() == numbers
    assert ends.tolist() == [read_varint(bytes(data), start, 64)[1] for start in starts]


def test_an_endless_varint_is_refused() -> None:
    data = np.full(20, 0xFF, np.uint8)
    with pytest.raises(TooLong):
        read_varints(data, np.array([0], np.int64))


def test_a_varint_beyond_the_data_is_refused() -> None:
    data = np.array([1, 0x80], np.uint8)
    with pytest.raises(IndexError):
        read_varints(data, np.array([1], np.int64))
