"""Frames come out whole and in order, however the bytes came in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.frames import LENGTH, SCRATCH_BYTES, Frames
from ottla.model.errors import ProtocolError

SMALL = st.integers(0, 40)
LARGE = st.integers(SCRATCH_BYTES - 20, SCRATCH_BYTES * 3)


def feed(frames: Frames, data: bytes, pieces: list[int]) -> list[bytes]:
    found, position, turn = [], 0, 0
    while position < len(data):
        buffer = frames.buffer()
        wanted = pieces[turn % len(pieces)] if pieces else len(buffer)
        count = min(len(buffer), wanted, len(data) - position)
        buffer[:count] = data[position : position + count]
        position += count
        turn += 1
        found += [bytes(frame) for frame in frames.received(count)]
    return found


@given(st.lists(SMALL, max_size=20), st.lists(st.integers(1, 100), max_size=5))
def test_small_frames_are_cut_at_their_lengths_whatever_the_pieces(
    sizes: list[int], pieces: list[int]
) -> None:
    bodies, data = written(sizes)
    assert feed(Frames(1 << 20), data, pieces) == bodies


@given(st.lists(SMALL | LARGE, max_size=6), st.lists(st.integers(2000, SCRATCH_BYTES), max_size=5))
def test_large_frames_are_received_in_place(sizes: list[int], pieces: list[int]) -> None:
    bodies, data = written(sizes)
    assert feed(Frames(1 << 20), data, pieces) == bodies


def written(sizes: list[int]) -> tuple[list[bytes], bytes]:
    bodies = [bytes([index % 256]) * size for index, size in enumerate(sizes)]
    return bodies, b"".join(LENGTH.pack(len(body)) + body for body in bodies)


@pytest.mark.parametrize("announced", [-1, 1001, 0x48545450])  # The last is what "HTTP" reads as.
def test_a_frame_of_an_impossible_size_is_refused_before_it_is_received(announced: int) -> None:
    with pytest.raises(ProtocolError, match=str(announced)):
        feed(Frames(1000), LENGTH.pack(announced), [])


@given(st.lists(SMALL | LARGE, max_size=6), st.lists(st.integers(1, SCRATCH_BYTES), max_size=5))
def test_a_reused_buffer_holds_each_frame_until_the_next(
    sizes: list[int], pieces: list[int]
) -> None:
    bodies, data = written(sizes)
    assert feed(Frames(1 << 20, reuses_buffer=True), data, pieces) == bodies


def test_frames_after_each_other_are_received_at_the_same_place() -> None:
    frames, found = Frames(1 << 20, reuses_buffer=True), []
    for body in (b"first", b"later"):
        for part in (LENGTH.pack(len(body)), body):
            frames.buffer()[: len(part)] = part
            found += frames.received(len(part))
    assert [bytes(frame) for frame in found] == [b"later", b"later"]
