"""Record batches that no honest producer sends: false counts and lengths, extreme numbers, bombs.

Nearly all have the right size and checksum, so that a broker has to look further. Bombs are a few
KiB and unfold to some MiB, or consist of thousands of empty pieces; each is made once.
"""

import zlib
from collections.abc import Callable
from functools import cache
from random import Random
from struct import pack
from typing import Final

from ottla.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, STAMPED, Batch
from ottla.records.compression import Codec, compress
from ottla.records.record import INT64_MAX, INT64_MIN, Record, build_batch, write_varint

CODECS: Final = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
BOMB_BYTES: Final = 16 << 20
BOMB_RECORDS: Final = 60_000
PIECES: Final = 5_000

COUNTS: Final = (0, -1, 1, 2, 5_000, 1_048_576, 10_000_000, 2**31 - 1, -(2**31))
TIMESTAMPS: Final = (0, -1, INT64_MAX, INT64_MIN, 2**62, -(2**62))
SEQUENCES: Final = (0, 1, 2, 2**31 - 1, 2**31 - 2, -1, -(2**31))
ATTRIBUTES: Final = (0x05, 0x07, 0x08, 0x10, 0x20, 0x40, 0x48, 0x7FFF, -1, -(2**15))

# Places in a header of what is replaced.
_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_ATTRIBUTES_AT: Final = 21
_PRODUCER_AT: Final = 43
_COUNT_AT: Final = 57


def hostile_batch(rng: Random, now: int) -> bytes:
    """One batch, near the wall time `now`."""
    return rng.choice(_KINDS)(rng, now)


def honest_batch(rng: Random, now: int) -> bytes:
    """One that most topics take."""
    count = rng.choice((1, 1, 3, 50))
    records = [
        Record(i, now, b"key %d" % i, rng.randbytes(rng.randrange(60))) for i in range(count)
    ]
    return bytes(build_batch(records, codec=rng.choice((Codec.NONE, *CODECS))))


def _false_count(rng: Random, now: int) -> bytes:
    data = bytearray(honest_batch(rng, now))
    count = rng.choice(COUNTS)
    delta = rng.choice((max(count - 1, -(2**31)), rng.choice(COUNTS)))
    data[_COUNT_AT : _COUNT_AT + 4] = pack(">i", count)
    data[_ATTRIBUTES_AT + 2 : _ATTRIBUTES_AT + 6] = pack(">i", delta)
    return _sealed(data)


def _false_length(rng: Random, now: int) -> bytes:
    data = bytearray(honest_batch(rng, now))
    length = rng.choice((0, -1, 13, 14, 48, 49, len(data) - 13, len(data), 2**31 - 1, -(2**31)))
    data[_LENGTH_AT : _LENGTH_AT + 4] = pack(">i", length)
    if rng.random() < 0.3:
        data[_MAGIC_AT] = rng.choice((0, 1, 3, 127, 255))
    return bytes(data)


def _false_attributes(rng: Random, now: int) -> bytes:
    data = bytearray(honest_batch(rng, now))
    data[_ATTRIBUTES_AT : _ATTRIBUTES_AT + 2] = pack(">h", rng.choice(ATTRIBUTES))
    return _sealed(data)


def _false_times(rng: Random, now: int) -> bytes:
    """Base, greatest and records' own timestamps from any part of 64 bits, and beyond."""
    times = [now, *TIMESTAMPS]
    records = [Record(i, rng.choice(times), b"k", b"v") for i in range(rng.choice((1, 3)))]
    data = build_batch(records, codec=rng.choice((Codec.NONE, *CODECS)))
    attributes, delta, _, _ = STAMPED.unpack_from(data, _ATTRIBUTES_AT)
    base, greatest = rng.choice(times), rng.choice(times)
    STAMPED.pack_into(data, _ATTRIBUTES_AT, attributes, delta, base, greatest)
    return _sealed(data)


def _false_producer(rng: Random, now: int) -> bytes:
    data = bytearray(honest_batch(rng, now))
    producer_id = rng.choice((0, 1, -2, 2**62, INT64_MAX, INT64_MIN))
    epoch = rng.choice((0, 1, -1, 2**15 - 1, -(2**15)))
    data[_PRODUCER_AT:_COUNT_AT] = pack(">qhi", producer_id, epoch, rng.choice(SEQUENCES))
    return _sealed(data)


def _false_records(rng: Random, now: int) -> bytes:
    """Lengths, deltas and header counts inside a record that contradict its bytes."""
    body = bytearray()
    for value in (rng.choice((-1, 0, 7, 60, 2**31 - 1, 2**31)), 0):
        write_varint(value, body)
    for _ in range(rng.randrange(8)):
        write_varint(rng.choice((-1, 0, 1, 2**31 - 1, -(2**31), INT64_MAX, INT64_MIN)), body)
    body += rng.randbytes(rng.randrange(20))
    codec = rng.choice((Codec.NONE, *CODECS))
    return _with_body(compress(codec, bytes(body)), codec, 1, now)


def _garbage(rng: Random, now: int) -> bytes:
    packed = bytearray(compress(rng.choice(CODECS), rng.randbytes(rng.randrange(300))))
    for _ in range(rng.randrange(4)):
        packed[rng.randrange(len(packed))] = rng.randrange(256)
    del packed[rng.randrange(len(packed) + 1) :]
    return _with_body(bytes(packed), rng.choice(CODECS), rng.choice((1, 5)), now)


def _bomb_of_bytes(rng: Random, now: int) -> bytes:
    codec = rng.choice(CODECS)
    return _with_body(_zeros(codec), codec, 1, now)


def _bomb_of_records(rng: Random, now: int) -> bytes:
    codec = rng.choice(CODECS)
    return _with_body(_records(codec), codec, BOMB_RECORDS, now)


def _bomb_of_pieces(rng: Random, now: int) -> bytes:
    codec, packed = rng.choice(_pieces())
    return _with_body(packed, codec, 1, now)


_KINDS: Final[tuple[Callable[[Random, int], bytes], ...]] = (
    _false_count,
    _false_length,
    _false_attributes,
    _false_times,
    _false_producer,
    _false_records,
    _garbage,
    _bomb_of_bytes,
    _bomb_of_records,
    _bomb_of_pieces,
)


@cache
def _zeros(codec: int) -> bytes:
    one = build_batch([Record(0, 0, b"k", bytes(BOMB_BYTES))])
    return compress(codec, one[HEADER_BYTES:])


@cache
def _records(codec: int) -> bytes:
    """All alike, so that a broker numbers them again; and all earlier than their header says."""
    one = build_batch([Record(0, 1000, b"k", b"")], base_offset=0)[HEADER_BYTES:]
    return compress(codec, bytes(one) * BOMB_RECORDS)


@cache
def _pieces() -> tuple[tuple[int, bytes], ...]:
    """Streams of empty members, blocks and frames, and frames that claim much."""
    member = zlib.compressobj(9, zlib.DEFLATED, 31).flush()
    block = pack(">i", 1) + b"\x00"
    lz4_frame = compress(Codec.LZ4, b"")
    skippable = pack("<II", 0x184D2A50, 0)
    wide = bytes.fromhex("28b52ffd0088010000")  # A window of 128 MiB, and an empty block.
    too_wide = bytes.fromhex("28b52ffd00a8010000")
    claims = bytes.fromhex("28b52ffde0ffffffffffffff7f010000")  # 2^63 - 1 bytes of content.
    return (
        (Codec.GZIP, member * PIECES),
        (Codec.SNAPPY, compress(Codec.SNAPPY, b"") + block * PIECES),
        (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(20)),
        (Codec.LZ4, lz4_frame * PIECES),
        (Codec.LZ4, lz4_frame[:-4] + (pack("<I", 0x80000001) + b"a") * PIECES + bytes(4)),
        (Codec.ZSTD, compress(Codec.ZSTD, b"") * PIECES),
        (Codec.ZSTD, skippable * PIECES),
        (Codec.ZSTD, wide * PIECES),
        (Codec.ZSTD, too_wide),
        (Codec.ZSTD, claims),
    )


def _with_body(body: bytes, codec: int, count: int, now: int) -> bytes:
    data = build_batch([Record(0, now, None, None)])[:HEADER_BYTES] + bytearray(body)
    data[_LENGTH_AT : _LENGTH_AT + 4] = pack(">i", len(data) - LOG_OVERHEAD_BYTES)
    STAMPED.pack_into(data, _ATTRIBUTES_AT, codec, count - 1, now, now)
    data[_COUNT_AT : _COUNT_AT + 4] = pack(">i", count)
    return _sealed(data)


def _sealed(data: bytearray) -> bytes:
    Batch(data).seal()
    return bytes(data)
