"""The header of a record batch: 61 bytes, read in one call, and the few fields a broker rewrites.

The body is opaque here; `record` parses it. Offsets and the leader epoch precede the range of the
CRC, so a broker assigns them without recomputing the checksum.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from ottla.model.types import Offset
from ottla.records.checksum import crc32c

Buffer = bytes | bytearray | memoryview

HEADER_BYTES: Final = 61
# Base offset and length field, which a batch's length does not count.
LOG_OVERHEAD_BYTES: Final = 12
MAGIC: Final = 2
CRC_START: Final = 21  # The CRC covers all bytes from the attributes on.

HEADER: Final = Struct(">qiibIhiqqqhii")
OFFSET_AND_LENGTH: Final = Struct(">qi")
ASSIGNED: Final = Struct(">qii")  # Base offset, length, leader epoch.
STAMPED: Final = Struct(">hiqq")  # Attributes, last offset delta, base and max timestamp.
PRODUCER: Final = Struct(">qhi")  # Producer id, epoch and base sequence.
PRODUCER_POSITION: Final = 43
UINT32: Final = Struct(">I")

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
SEQUENCE_MAX: Final = 2**31 - 1

# The fields of a placed batch that a segment needs: its bytes, their number, base and last offset,
# max timestamp, leader epoch, producer id. A plain tuple, since one is created for every batch.
PlacedBatch = tuple[Buffer, int, Offset, Offset, int, int, int]


class Batch:
    """A view of one batch. `data` holds exactly its bytes; assigning offsets needs it writable."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "data",
        "last_offset_delta",
        "leader_epoch",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "size",
    )

    base_offset: Offset
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    def __init__(self, data: Buffer) -> None:
        """`data` must be exactly one batch; its length field is not checked."""
        self.data = data
        (
            self.base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(data)
        self.size: int = length + LOG_OVERHEAD_BYTES

    @classmethod
    def parse(cls, buffer: Buffer, position: int = 0) -> "Batch":
        """The batch at `position`; ValueError if it is incomplete. The CRC is not checked."""
        _, length = OFFSET_AND_LENGTH.unpack_from(buffer, position)
        size = length + LOG_OVERHEAD_BYTES
        if size < HEADER_BYTES:
            raise ValueError(f"a batch of {size} bytes is shorter than its header")
        if position + size > len(buffer):
            raise ValueError(f"a batch of {size} bytes, of which {len(buffer) - position} are here")
        if position == 0 and size == len(buffer):
            return cls(buffer)
        return cls(memoryview(buffer)[position : position + size])

    def assign(self, base_offset: Offset, leader_epoch: int) -> None:
        ASSIGNED.pack_into(
            self.data,
            0,
            base_offset,
            self.size - LOG_OVERHEAD_BYTES,
            leader_epoch,
        )
        self.base_offset = base_offset
        self.leader_epoch = leader_epoch

    def stamp_append_time(self, now: int) -> None:
        """Set LogAppendTime `now` for all records and recompute the CRC."""
        self._restamp(self.attributes | LOG_APPEND_TIME, now)

    def clear_append_time(self) -> None:
        self._restamp(self.attributes & ~LOG_APPEND_TIME, self.max_timestamp)

    def set_max_timestamp(self, max_timestamp: int) -> None:
        self._restamp(self.attributes, max_timestamp)

    def set_producer(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Rewrite what the header says about the producer, and the CRC."""
        self.producer_id, self.producer_epoch = producer_id, producer_epoch
        self.base_sequence = base_sequence
        PRODUCER.pack_into(self.data, PRODUCER_POSITION, producer_id, producer_epoch, base_sequence)
        self.seal()

    def _restamp(self, attributes: int, max_timestamp: int) -> None:
        self.attributes = attributes
        self.max_timestamp = max_timestamp
        STAMPED.pack_into(
            self.data,
            CRC_START,
            attributes,
            self.last_offset_delta,
            self.base_timestamp,
            max_timestamp,
        )
        self.seal()

    def seal(self) -> None:
        """Recompute and store the CRC."""
        self.crc = checksum(self.data)
        UINT32.pack_into(self.data, 17, self.crc)

    @property
    def placed(self) -> PlacedBatch:
        return (
            self.data,
            self.size,
            self.base_offset,
            self.base_offset + self.last_offset_delta,
            self.max_timestamp,
            self.leader_epoch,
            self.producer_id,
        )

    @property
    def is_valid(self) -> bool:
        """Whether the CRC matches."""
        return self.crc == checksum(self.data)

    @property
    def last_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> Offset:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & SEQUENCE_MAX

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def body(self) -> memoryview:
        return memoryview(self.data)[HEADER_BYTES : self.size]

    def __repr__(self) -> str:
        return (
            f"Batch(offsets {self.base_offset}-{self.last_offset}, {self.size} bytes, "
            f"epoch {self.leader_epoch}, codec {self.codec}, producer {self.producer_id})"
        )


def walk_batches(data: Buffer) -> Iterator[Batch]:
    """The whole batches of `data` in order; ends at a truncated one, or where no batch begins.

    Neither checksum nor format is checked.
    """
    position, end = 0, len(data)
    while end - position >= HEADER_BYTES:
        try:
            batch = Batch.parse(data, position)
        except ValueError:
            return
        yield batch
        position += batch.size


def rewrite(
    batch: Batch,
    body: Buffer,
    *,
    attributes: int,
    base_timestamp: int,
    max_timestamp: int,
    count: int,
) -> bytearray:
    """A sealed batch with the offsets, epoch and producer of `batch` and another body."""
    data = bytearray(HEADER_BYTES)
    HEADER.pack_into(
        data,
        0,
        batch.base_offset,
        HEADER_BYTES + len(body) - LOG_OVERHEAD_BYTES,
        batch.leader_epoch,
        MAGIC,
        0,
        attributes,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    data += body
    UINT32.pack_into(data, 17, checksum(data))
    return data


def checksum(data: Buffer) -> int:
    """The expected CRC-32C of the batch in `data`."""
    value: int = crc32c(memoryview(data)[CRC_START:])
    return value
