"""Record batches for the answer script: good ones, bad ones, and an idempotent producer's."""

import struct

import crc32c

from ottla.records.record import Record, build_batch

TIME = 1_785_000_000_000
PRODUCER = 4242
CRC_POSITION, ATTRIBUTES_POSITION = 17, 21
LAST_OFFSET_DELTA_POSITION, COUNT_POSITION = 23, 57


def plain(
    count: int, *, size: int = 10, codec: int = 0, timestamp: int = TIME, **producer: int
) -> bytes:
    """Records without keys; the first of a known time, each a millisecond later."""
    records = [Record(n, timestamp + n, None, b"x" * size, ()) for n in range(count)]
    return bytes(build_batch(records, codec=codec, **producer))  # type: ignore[arg-type]


def changed(position: int, layout: str, value: int, *, seal: bool = True) -> bytes:
    """A batch of two records with one field of its header changed."""
    data = bytearray(plain(2))
    struct.pack_into(layout, data, position, value)
    if seal:
        struct.pack_into(">I", data, CRC_POSITION, crc32c.crc32c(data[ATTRIBUTES_POSITION:]))
    return bytes(data)


def idempotent(sequence: int, count: int = 1, *, epoch: int = 0, producer: int = PRODUCER) -> bytes:
    return plain(count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)


# Null is not among them: Apache Kafka never answers it, nor anything after it on that connection.
BAD: dict[str, bytes] = {
    "nothing": b"",
    "half a header": plain(1)[:30],
    "half a batch": plain(2)[:-5],
    "two batches": plain(1) + plain(1),
    "a batch and a half": plain(1) + plain(1)[:20],
    "a wrong CRC": changed(CRC_POSITION, ">I", 1, seal=False),
    "magic 1": changed(16, ">b", 1, seal=False),
    "magic 3": changed(16, ">b", 3, seal=False),
    "a length below the header's": changed(8, ">i", 10, seal=False),
    "a negative length": changed(8, ">i", -5, seal=False),
    "a length above what was sent": changed(8, ">i", 10_000, seal=False),
    "a control batch": changed(ATTRIBUTES_POSITION, ">h", 0x20),
    "a transactional batch without its id": changed(ATTRIBUTES_POSITION, ">h", 0x10),
    "no records": changed(COUNT_POSITION, ">i", 0),
    "fewer records than counted": changed(COUNT_POSITION, ">i", 3),
    "a negative count": changed(COUNT_POSITION, ">i", -1),
    "a last offset that does not fit": changed(LAST_OFFSET_DELTA_POSITION, ">i", 5),
    "an unknown codec": changed(ATTRIBUTES_POSITION, ">h", 5),
    "a producer id without a sequence": plain(1, producer_id=7, producer_epoch=0, base_sequence=-1),
    "a base offset of its own": changed(0, ">q", 77),
}

# In this order: each is judged by what those before it left behind.
IDEMPOTENT: list[tuple[str, bytes]] = [
    ("the first", idempotent(0, 2)),
    ("the second", idempotent(2)),
    ("the second again", idempotent(2)),
    ("the first again", idempotent(0, 2)),
    ("a gap", idempotent(9)),
    ("a part of the first again", idempotent(1)),
    ("a third", idempotent(3)),
    ("a fourth", idempotent(4)),
    ("a fifth", idempotent(5)),
    ("a sixth", idempotent(6)),
    ("the first, past the window", idempotent(0, 2)),
    ("a later epoch not from zero", idempotent(5, epoch=1)),
    ("a later epoch from zero", idempotent(0, epoch=1)),
    ("an earlier epoch", idempotent(7, epoch=0)),
    ("a stranger not from zero", idempotent(3, producer=99)),
    ("a stranger from zero", idempotent(0, producer=99)),
]
