"""Unsigned varints, and tagged fields, which are built on them."""

from typing import Final, NoReturn

from ottla.model.errors import ProtocolError

Buffer = bytes | bytearray | memoryview

TAGGED_BYTES_MAX: Final = 128 * 1024
TAGS_MAX: Final = 64
UVARINT_BYTES_MAX: Final = 5


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """The number at `position`, and its end position."""
    if position >= len(buffer):
        fail("a number", "lies beyond the end of the message")
    byte = buffer[position]
    if byte < 128:
        return byte, position + 1
    return finish_uvarint(buffer, position + 1, byte)


def finish_uvarint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """The rest of a number whose first byte, already read, is `first`."""
    if position < len(buffer) and buffer[position] < 128:
        return first & 127 | buffer[position] << 7, position + 1  # Two bytes, the usual case.
    value, shift = first & 127, 7
    end = min(len(buffer), position + UVARINT_BYTES_MAX - 1)
    while position < end:
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise ProtocolError(f"a number does not end within {UVARINT_BYTES_MAX} bytes")


def append_uvarint(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def read_tag(buffer: Buffer, position: int, end: int) -> tuple[int, int, int]:
    """A tagged field's number, and the start and end of its value."""
    tag, position = read_uvarint(buffer, position)
    size, position = read_uvarint(buffer, position)
    if size > end - position:
        fail(f"tagged field {tag}", "lies beyond the end of the message")
    if size > TAGGED_BYTES_MAX:
        fail(f"tagged field {tag}", f"has {size} bytes, more than {TAGGED_BYTES_MAX}")
    return tag, position, position + size


def check_tag_count(count: int) -> None:
    if count > TAGS_MAX:
        fail("a struct", f"has {count} tagged fields, more than {TAGS_MAX}")


def skip_tags(buffer: Buffer, position: int, end: int, first: int) -> int:
    """Skip unknown tagged fields; `first` is the first byte of their count."""
    if first > 127:
        first, position = finish_uvarint(buffer, position, first)
    check_tag_count(first)
    for _ in range(first):
        _, _, position = read_tag(buffer, position, end)
    return position


def append_tags(out: bytearray, tags: list[tuple[int, bytearray]]) -> None:
    append_uvarint(out, len(tags))
    for tag, value in tags:
        append_uvarint(out, tag)
        append_uvarint(out, len(value))
        out += value


def fail(what: str, why: str) -> NoReturn:
    raise ProtocolError(f"{what} {why}")
