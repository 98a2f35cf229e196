"""Variable-length numbers and tagged fields, and where they end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import ProtocolError
from ottla.protocol.varint import (
    TAGGED_BYTES_MAX,
    TAGS_MAX,
    append_tags,
    append_uvarint,
    read_tag,
    read_uvarint,
    skip_tags,
)


@given(value=st.integers(0, (1 << 32) - 1), before=st.binary(max_size=3))
def test_a_number_is_read_as_it_was_written(value: int, before: bytes) -> None:
    out = bytearray(before)
    append_uvarint(out, value)
    assert read_uvarint(bytes(out) + b"\xff", len(before)) == (value, len(out))


@pytest.mark.parametrize(
    ("value", "data"),
    [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), ((1 << 32) - 1, b"\xff\xff\xff\xff\x0f")],
)
def test_numbers_have_the_bytes_of_kafka(value: int, data: bytes) -> None:
    out = bytearray()
    append_uvarint(out, value)
    assert out == data


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 4, b"\x80\x80\x80\x80\x80\x01"])
def test_a_number_that_does_not_end_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_uvarint(data, 0)


def test_unknown_tagged_fields_are_skipped() -> None:
    out = bytearray()
    append_tags(out, [(1, bytearray(b"one")), (900, bytearray(b"x" * 300)), (901, bytearray())])
    assert skip_tags(bytes(out) + b"rest", 1, len(out) + 4, out[0]) == len(out)


def test_a_count_of_twenty_million_tags_is_refused_before_reading_them() -> None:
    out = bytearray()
    append_uvarint(out, 20_000_000)
    with pytest.raises(ProtocolError, match=f"20000000 tagged fields, more than {TAGS_MAX}"):
        skip_tags(bytes(out), 1, len(out), out[0])


def test_a_tagged_field_lies_within_the_message_and_within_its_limit() -> None:
    with pytest.raises(ProtocolError, match="beyond the end"):
        read_tag(b"\x00\x05abcd", 0, 6)
    huge = bytearray(b"\x00")
    append_uvarint(huge, TAGGED_BYTES_MAX + 1)
    start = len(huge)
    huge += bytes(TAGGED_BYTES_MAX + 1)
    with pytest.raises(ProtocolError, match=f"more than {TAGGED_BYTES_MAX}"):
        read_tag(huge, 0, len(huge))
    huge[1:start] = b"\x80\x80\x08"  # Exactly the limit.
    assert read_tag(huge, 0, len(huge)) == (0, 4, 4 + TAGGED_BYTES_MAX)
