"""The four codecs of record batches, with bounds on the output bytes and on the number of pieces.

A batch of one megabyte can decompress to 32 gigabytes (zstd on zeros), so output buffers never grow
without a bound. A piece (gzip member, snappy block) costs time even if it is empty, so their number
is bounded too; lz4 reads one frame, and zstd frames cost almost nothing. The time is linear in the
input plus the bound.

gzip is zlib's, lz4 is `lz4` (Java reads only frames of independent blocks, which `cramjam` cannot
write), snappy and zstd are `cramjam`. The libraries are imported on first use: most brokers pass
batches through and never need them.
"""

import zlib
from enum import IntEnum
from mmap import mmap
from struct import Struct, error
from typing import Final

from ottla.records.batch import Buffer

_INT: Final = Struct(">i")

GZIP_LEVEL_DEFAULT: Final = -1
LZ4_LEVEL_DEFAULT: Final = 9
ZSTD_LEVEL_DEFAULT: Final = 3

# Snappy's smallest block size in Java is 1 KiB; gzip writers write one member.
_PIECE_BYTES_MIN: Final = 1024
_PIECES_MIN: Final = 16

# Larger outputs are produced in chunks and joined: Python joins them without the GIL, so the event
# loop continues while a worker decompresses.
_CHUNK_BYTES: Final = 1 << 20

_GZIP_WINDOW: Final = 31  # 15 bits, with gzip's own header and trailer.
_GZIP_FEED_BYTES: Final = 4096
_FIRST_GUESS_BYTES: Final = 64 * 1024

# Snappy as Java streams it (xerial): a header, then blocks of a length and raw snappy each.
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + _INT.pack(1) + _INT.pack(1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(ValueError):
    """The bytes are malformed for their codec."""


class TooLarge(CompressionError):
    """The output exceeds the bound."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"the records decompress_body to more than {bytes_max} bytes")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress with the framing of Apache Kafka's writer; `level` None is Kafka's default."""
    if codec == Codec.GZIP:
        compressor = zlib.compressobj(
            GZIP_LEVEL_DEFAULT if level is None else level, zlib.DEFLATED, _GZIP_WINDOW
        )
        return compressor.compress(data) + compressor.flush()
    if codec == Codec.SNAPPY:
        return _compress_snappy(data)
    if codec == Codec.LZ4:
        return _compress_lz4(data, LZ4_LEVEL_DEFAULT if level is None else level)
    if codec == Codec.ZSTD:
        from cramjam import zstd

        return bytes(zstd.compress(data, ZSTD_LEVEL_DEFAULT if level is None else level))
    assert codec == Codec.NONE, f"codec {codec} does not exist"
    return bytes(data)


def decompress(codec: int, data: Buffer, bytes_max: int) -> Buffer:
    """Decompress to at most `bytes_max` bytes, with not much more memory than that.

    Raises TooLarge for more output, or for more pieces than regular data of `bytes_max` bytes has.
    """
    if codec == Codec.NONE:
        if len(data) > bytes_max:
            raise TooLarge(bytes_max)
        return data
    if codec == Codec.GZIP:
        return _decompress_gzip(data, bytes_max)
    if codec == Codec.SNAPPY:
        return _decompress_snappy(data, bytes_max)
    if codec == Codec.LZ4:
        return _decompress_lz4(data, bytes_max)
    if codec == Codec.ZSTD:
        return _decompress_zstd(data, bytes_max)
    raise CompressionError(f"codec {codec} does not exist")


def _pieces_max(bytes_max: int) -> int:
    return _PIECES_MIN + bytes_max // _PIECE_BYTES_MIN


def _decompress_gzip(data: Buffer, bytes_max: int) -> bytes:
    view = memoryview(data)
    parts: list[bytes] = []
    left, pieces_left, position = bytes_max, _pieces_max(bytes_max), 0
    while position < len(view):  # A gzip stream may have several members.
        if not pieces_left:
            raise TooLarge(bytes_max)
        # There is nearly always one member; zlib copies the bytes after a member.
        feed_bytes = _GZIP_FEED_BYTES if parts else len(view)
        position = _decompress_member(view, position, feed_bytes, left + 1, parts)
        left -= len(parts[-1])
        if left < 0:
            raise TooLarge(bytes_max)
        pieces_left -= 1
    return _joined(parts)


def _decompress_member(
    view: memoryview, position: int, feed_bytes: int, bytes_max: int, parts: list[bytes]
) -> int:
    """Append the output of the member at `position` to `parts`, at most `bytes_max`; return its
    end.

    If `bytes_max` is reached, the returned position is meaningless.
    """
    member = zlib.decompressobj(_GZIP_WINDOW)
    found: list[bytes] = []
    feed = view[:0]
    try:
        while not member.eof and bytes_max > 0:
            if len(feed) == 0:
                if position >= len(view):
                    raise CompressionError("the gzip data ends too early")
                feed = view[position : position + feed_bytes]
                position += len(feed)
                feed_bytes *= 2
            found.append(member.decompress(feed, min(bytes_max, _CHUNK_BYTES)))
            bytes_max -= len(found[-1])
            feed = memoryview(member.unconsumed_tail)
    except zlib.error as failure:
        raise CompressionError(f"bad gzip data: {failure}") from failure
    parts.append(_joined(found))
    return position - len(member.unused_data)


def _joined(parts: list[bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_snappy(data: Buffer) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_INT.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, bytes_max: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, bytes_max)
    parts: list[bytes] = []
    left, pieces_left = bytes_max, _pieces_max(bytes_max)
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if not pieces_left:
            raise TooLarge(bytes_max)
        try:
            (size,) = _INT.unpack_from(view, position)
        except error as failure:
            raise CompressionError("the snappy data ends too early") from failure
        block = view[position + 4 : position + 4 + size]
        if size < 0 or len(block) != size:
            raise CompressionError("the snappy data ends too early")
        try:
            parts.append(_decompress_snappy_block(block, left))
        except TooLarge:
            raise TooLarge(bytes_max) from None
        left -= len(parts[-1])
        pieces_left -= 1
        position += 4 + size
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, bytes_max: int) -> bytes:
    from cramjam import DecompressionError, snappy

    try:
        # The claimed size is at the start of the block.
        size: int = snappy.decompress_raw_len(block)
        if size > bytes_max:
            raise TooLarge(bytes_max)
        # Snappy's ratio is at most about 64 bytes for 3: refuse a higher claim before allocating.
        if size > 32 * len(block) + 64:
            raise CompressionError("the snappy block claims more than it can hold")
        output = bytearray(size)
        written = snappy.decompress_raw_into(block, output)
    except DecompressionError as failure:
        raise CompressionError(f"bad snappy data: {failure}") from failure
    return bytes(memoryview(output)[:written])


def _compress_lz4(data: Buffer, level: int) -> bytes:
    import lz4.frame

    # Kafka's level 9 is the default of its fast compressor, which is 0 in `lz4`.
    framed: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level == LZ4_LEVEL_DEFAULT else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    return framed


def _decompress_lz4(data: Buffer, bytes_max: int) -> bytes:
    import lz4.frame

    decompressor = lz4.frame.LZ4FrameDecompressor()
    parts: list[bytes] = []
    left = bytes_max
    feed: Buffer = data
    while not decompressor.eof:
        try:
            parts.append(decompressor.decompress(feed, max_length=min(left + 1, _CHUNK_BYTES)))
        except RuntimeError as failure:
            raise CompressionError(f"bad lz4 data: {failure}") from failure
        feed = b""  # The decompressor keeps unused input.
        left -= len(parts[-1])
        if left < 0:
            raise TooLarge(bytes_max)
        if decompressor.needs_input:
            break
    if not decompressor.eof:
        raise CompressionError("the lz4 data ends too early")
    return _joined(parts)


def _decompress_zstd(data: Buffer, bytes_max: int) -> Buffer:
    from cramjam import DecompressionError, zstd

    # The decompressor writes into a fixed buffer. The first size fits most batches; then it grows
    # in steps. Untouched pages of a mapping cost neither time nor memory.
    size = min(bytes_max, max(_FIRST_GUESS_BYTES, 8 * len(data)))
    while True:
        output = bytearray(size) if size <= _CHUNK_BYTES else mmap(-1, size)
        try:
            written = zstd.decompress_into(data, output)
        except DecompressionError as failure:
            if "whole buffer" not in str(failure):
                raise CompressionError(f"bad zstd data: {failure}") from failure
            if size == bytes_max:
                raise TooLarge(bytes_max) from failure
            size = min(bytes_max, 8 * size)
            continue
        if written <= _CHUNK_BYTES:
            return output[:written]
        starts = range(0, written, _CHUNK_BYTES)
        return b"".join([bytes(output[at : min(at + _CHUNK_BYTES, written)]) for at in starts])
