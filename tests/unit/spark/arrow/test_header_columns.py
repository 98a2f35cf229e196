import numpy as np
import pytest

from ottla.records.record import write_varint
from ottla.spark.arrow.header_columns import ROWS_MIN, read_headers
from ottla.spark.arrow.schema import HEADERS
from tests.cpu import cpu_seconds

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
    lists = lists * ROWS_MIN + [many]
    assert read(lists) == expected * ROWS_MIN + [expected[2]]


def test_one_record_of_very_many_headers_takes_little_time() -> None:
    headers: Headers = [(b"", None)] * 50_000 + [(b"last", b"v")]
    data, starts, ends = encoded([headers])
    array = np.frombuffer(data, np.uint8)
    column = read_headers(data, array, starts, ends)
    seconds = cpu_seconds(lambda: read_headers(data, array, starts, ends))
    assert seconds < 0.5  # A step of numpy for each takes 1.7 s.
    assert column.flatten()[-1].as_py() == {"key": "last", "value": b"v"}
    assert column.flatten().field(1).null_count == 50_000


def test_invalid_utf_8_in_a_header_key_is_replaced() -> None:
    assert read([[(b"a\xff", b"1")]]) == [[("a\ufffd", b"1")]]


def test_more_headers_than_there_is_room_for_are_refused() -> None:
    data = bytearray()
    write_varint(1000, data)
    data += bytes(1999)
    array = np.frombuffer(bytes(data), np.uint8)
    with pytest.raises(IndexError, match="claims more headers"):
        read_headers(bytes(data), array, np.array([0]), np.array([len(data)]))


def test_a_header_that_goes_past_its_record_is_refused() -> None:
    data, starts, ends = encoded([[(b"a", b"12345")], [(b"b", b"6")]])
    ends[0] -= 2
    for times in (1, ROWS_MIN):  # One by one, and in steps.
        with pytest.raises(IndexError, match="goes past the end"):
            read_headers(
                data, np.frombuffer(data, np.uint8), np.tile(starts, times), np.tile(ends, times)
            )
