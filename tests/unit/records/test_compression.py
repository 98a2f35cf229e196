import io
import random
import tracemalloc
import zlib

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
def test_what_is_compressed_comes_back(codec: Codec, data: bytes, repeats: int) -> None:
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
def test_what_ends_too_early_is_refused(codec: Codec, cut: int) -> None:
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
def test_a_higher_level_packs_no_worse(codec: int, levels: tuple[int, int]) -> None:
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
