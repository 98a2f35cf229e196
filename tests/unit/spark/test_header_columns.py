import numpy as np
import pytest

from ottla.records.record import write_varint
from ottla.spark.header_columns import read_headers
from ottla.spark.schema import HEADERS

Headers = list[tuple[bytes, bytes | None]]


def encoded(lists: list[Headers]) -> tuple[bytes, np.ndarray, np.ndarray]:
    data = bytearray()
    starts, ends = [], []
    for headers in lists:
        data += b"key and value"
        starts.append(len(data))
        write_varint(len(headers), data)
        for name, value in headers:
            write_varint(len(name), data)
            data += name
            write_varint(-1 if value is None else len(value), data)
            data += value or b""
        ends.append(len(data))
    return bytes(data), np.array(starts, np.int64), np.array(ends, np.int64)


def read(lists: list[Headers]) -> list[list[tuple[str, bytes | None]] | None]:
    data, starts, ends = encoded(lists)
    column = read_headers(data, np.frombuffer(data, np.uint8), starts, ends)
    assert column.type == HEADERS
    column.validate(full=True)
    return [
        None if item is None else [(header["key"], header["value"]) for header in item]
        for item in column.to_pylist()
    ]


def test_records_with_many_few_and_no_headers() -> None:
    many = [(f"h{n}".encode(), bytes(n)) for n in range(100)]
    lists = [[], [(b"a", b"1")], many, [], [(b"a", None), (b"a", b""), (b"", b"x")]]
    expected = [[(name.decode(), value) for name, value in item] or None for item in lists]
    assert read(lists) == expected
    assert read([[], []]) == [None, None]


def test_a_name_that_is_no_text_is_shown_as_far_as_it_can_be() -> None:
    assert read([[(b"a\xff", b"1")]]) == [[("a\ufffd", b"1")]]


def test_more_headers_than_there_is_room_for_are_refused() -> None:
    data = bytearray()
    write_varint(1000, data)
    array = np.frombuffer(bytes(data), np.uint8)
    with pytest.raises(IndexError, match="claims more headers"):
        read_headers(bytes(data), array, np.array([0]), np.array([len(data)]))


def test_a_header_that_goes_past_its_record_is_refused() -> None:
    data, starts, ends = encoded([[(b"a", b"12345")], [(b"b", b"6")]])
    ends[0] -= 2
    with pytest.raises(IndexError, match="goes past the end"):
        read_headers(data, np.frombuffer(data, np.uint8), starts, ends)
