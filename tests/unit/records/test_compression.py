import io
import random
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from time import monotonic, sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.codec import (
    gzip_decode,
    gzip_encode,
    lz4_decode,
    lz4_encode,
    snappy_decode,
    snappy_encode,
    zstd_decode,
    zstd_encode,
)

from ottla.records.compression import Codec, CompressionError, TooLarge, compress, decompress
from tests.cpu import cpu_seconds

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
OTHERS = {
    Codec.GZIP: (gzip_encode, gzip_decode),
    Codec.SNAPPY: (snappy_encode, snappy_decode),
    Codec.LZ4: (lz4_encode, lz4_decode),
    Codec.ZSTD: (zstd_encode, zstd_decode),
}
MEGABYTE = 1 << 20


@pytest.mark.parametrize("codec", [Codec.NONE, *CODECS])
@given(data=st.binary(max_size=3000), repeats=st.integers(1, 60))
def test_compression_round_trips(codec: Codec, data: bytes, repeats: int) -> None:
    whole = data * repeats
    assert bytes(decompress(codec, compress(codec, whole), len(whole))) == whole


@pytest.mark.parametrize("codec", CODECS)
def test_another_implementation_reads_what_we_write_and_we_read_what_it_writes(
    codec: Codec,
) -> None:
    data = random.Random(1).randbytes(50_000) + b"abc" * 30_000
    encode, decode = OTHERS[codec]
    assert decode(compress(codec, data)) == data
    assert bytes(decompress(codec, encode(data), len(data))) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
def test_every_kind_of_buffer_is_taken(codec: Codec, buffer: type) -> None:
    data = b"hello" * 100
    assert compress(codec, buffer(data)) == compress(codec, data)
    assert bytes(decompress(codec, buffer(compress(codec, data)), 500)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_one_byte_more_than_the_cap_is_refused(codec: Codec) -> None:
    packed = compress(codec, bytes(100_000))
    assert len(decompress(codec, packed, 100_000)) == 100_000
    with pytest.raises(TooLarge):
        decompress(codec, packed, 99_999)


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_within_the_memory_of_the_cap(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 * MEGABYTE))
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decompress(codec, bomb, MEGABYTE)
        assert tracemalloc.get_traced_memory()[1] < 4 * MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("cut", [1, 5, 20])
def test_truncated_input_is_refused(codec: Codec, cut: int) -> None:
    packed = compress(codec, random.Random(2).randbytes(5_000))
    with pytest.raises(CompressionError):
        decompress(codec, packed[:-cut], 10_000)


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_is_refused(codec: Codec) -> None:
    with pytest.raises(CompressionError):
        decompress(codec, b"\xff\xfe\x00 certainly not compressed", 10_000)


def test_gzip_members_one_after_the_other_are_one_stream() -> None:
    packed = compress(Codec.GZIP, b"first") + compress(Codec.GZIP, b"second")
    assert decompress(Codec.GZIP, packed, 100) == b"firstsecond"
    with pytest.raises(TooLarge):
        decompress(Codec.GZIP, packed, 10)


def test_gzip_members_of_any_size_are_read_behind_the_first() -> None:
    parts = [b"", b"x", random.Random(3).randbytes(50_000), b"", b"y" * 100_000]
    packed = b"".join(compress(Codec.GZIP, part) for part in parts)
    whole = b"".join(parts)
    assert decompress(Codec.GZIP, packed, len(whole)) == whole
    with pytest.raises(TooLarge):
        decompress(Codec.GZIP, packed, len(whole) - 1)
    with pytest.raises(CompressionError):
        decompress(Codec.GZIP, packed[:-3], len(whole))


EMPTY_BLOCK = (1).to_bytes(4, "big") + b"\x00"
EMPTY_PIECES = {
    Codec.GZIP: (b"", compress(Codec.GZIP, b"")),
    Codec.SNAPPY: (compress(Codec.SNAPPY, b""), EMPTY_BLOCK),
}


@pytest.mark.parametrize("codec", EMPTY_PIECES)
def test_more_pieces_than_regular_data_has_are_refused(codec: Codec) -> None:
    start, piece = EMPTY_PIECES[codec]
    assert decompress(codec, start + 16 * piece, 1) == b""
    with pytest.raises(TooLarge):
        decompress(codec, start + 17 * piece, 1)


@pytest.mark.parametrize("codec", EMPTY_PIECES)
def test_a_megabyte_of_empty_pieces_takes_a_small_budget_little_time(codec: Codec) -> None:
    start, piece = EMPTY_PIECES[codec]
    data = start + MEGABYTE // len(piece) * piece

    def refuse() -> None:
        with pytest.raises(TooLarge):
            decompress(codec, data, 128 * 1024)

    assert cpu_seconds(refuse) < 0.05


def test_empty_gzip_members_take_time_in_proportion() -> None:
    data = compress(Codec.GZIP, b"") * 60_000
    seconds = cpu_seconds(lambda: decompress(Codec.GZIP, data, 64 * MEGABYTE))
    assert seconds < 0.4  # It takes 0.08 s; copying the rest for each member, 1.1 s.


def test_snappy_without_javas_frame_is_read_too() -> None:
    raw = snappy_encode(b"plain snappy" * 10, xerial_compatible=False)
    assert decompress(Codec.SNAPPY, raw, 1000) == b"plain snappy" * 10


def test_a_snappy_block_cannot_claim_what_it_does_not_hold() -> None:
    with pytest.raises(CompressionError):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x07" + b"x" * 20, 2**31)


def test_lz4_blocks_are_independent_since_java_reads_no_others() -> None:
    flags = compress(Codec.LZ4, b"x" * 200_000)[4]
    assert flags & 0x20, "block independence"
    assert not flags & 0x08, "no content size"


@pytest.mark.parametrize(("codec", "levels"), [(1, (1, 9)), (3, (1, 17)), (4, (1, 19))])
def test_a_higher_level_compresses_no_worse(codec: int, levels: tuple[int, int]) -> None:
    data = b"".join(b"%d:%d," % (i, i * i % 997) for i in range(20_000))
    low, high = (compress(codec, data, level) for level in levels)
    assert len(high) <= len(low)
    assert bytes(decompress(codec, high, len(data))) == data


def test_gzip_is_what_the_standard_library_writes() -> None:
    assert zlib.decompress(compress(Codec.GZIP, b"abc"), 31) == b"abc"
    assert io.BytesIO(compress(Codec.GZIP, b"abc")).read(2) == b"\x1f\x8b"


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(CompressionError, match="codec 5"):
        decompress(5, b"", 10)


def longest_gap(work: Callable[[], object]) -> float:
    """Longest time in seconds that this thread waits for the GIL while another one works."""
    worker = threading.Thread(target=work)
    worker.start()
    longest, before = 0.0, monotonic()
    while worker.is_alive():
        sleep(0)
        now = monotonic()
        longest, before = max(longest, now - before), now
    return longest


@pytest.mark.parametrize("codec", CODECS)
def test_large_data_is_decompressed_without_holding_the_gil(codec: Codec) -> None:
    packed = compress(codec, bytes(60 * MEGABYTE))
    for _ in range(8):  # Others may use the machine: one good measurement is enough.
        gap = longest_gap(lambda: decompress(codec, packed, 64 * MEGABYTE))
        if gap < 0.06:
            break
    assert gap < 0.06  # In one piece it takes twice as long.
