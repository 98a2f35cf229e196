"""Metadata records as batches of the log and of snapshots, and back.

Pure: bytes in, records out. A decision is one batch; one too large for that is several, between
BeginTransaction and EndTransaction, so that a crash in between leaves nothing of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ottla.metadata.image.features import has_transactions, record_version
from ottla.model.errors import Damaged, ProtocolError
from ottla.model.types import Offset, WallTime
from ottla.protocol.control_records import (
    Control,
    ControlType,
    KRaftVersionRecord,
    LeaderChangeMessage,
    QuorumControl,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
    decode_control,
    encode_control,
)
from ottla.protocol.metadata_records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    decode_record,
    encode_record,
)
from ottla.records.batch import Batch, walk_batches
from ottla.records.record import BadRecords, Record, build_batch, read_records

BATCH_BYTES_MAX: Final = 8 * 1024 * 1024  # Kafka's limit.
DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
RECORD_OVERHEAD_BYTES: Final = 16  # Upper bound, around each value.

_CONTROL_TYPES: Final[dict[type, ControlType]] = {
    LeaderChangeMessage: ControlType.LEADER_CHANGE,
    SnapshotHeaderRecord: ControlType.SNAPSHOT_HEADER,
    SnapshotFooterRecord: ControlType.SNAPSHOT_FOOTER,
    KRaftVersionRecord: ControlType.KRAFT_VERSION,
    VotersRecord: ControlType.KRAFT_VOTERS,
}


def control_batch(
    controls: Iterable[QuorumControl], base_offset: Offset, epoch: int, now: WallTime
) -> bytearray:
    records = []
    for offset, control in enumerate(controls, base_offset):
        key, value = encode_control(_CONTROL_TYPES[type(control)], control)
        records.append(Record(offset, now, key, value))
    return build_batch(records, leader_epoch=epoch, is_control=True)


def encoded_decision(
    records: list[MetadataRecord], metadata_version: int
) -> tuple[list[MetadataRecord], list[bytes]]:
    """The records of one decision and their bytes, in a transaction if one batch cannot hold
    them.
    """
    values = encoded(records, metadata_version)
    if not has_transactions(metadata_version) or _size(values) <= BATCH_BYTES_MAX:
        return records, values
    begin, end = BeginTransactionRecord(), EndTransactionRecord()
    first, last = encoded((begin, end), metadata_version)
    return [begin, *records, end], [first, *values, last]


def encoded(records: Iterable[MetadataRecord], metadata_version: int) -> list[bytes]:
    return [encode_record(record, record_version(record, metadata_version)) for record in records]


def data_batches(
    decisions: Iterable[Sequence[bytes]], base_offset: Offset, epoch: int, now: WallTime
) -> Iterator[bytearray]:
    """Encoded records in few batches; a decision is split only if no batch can hold it."""
    offset = base_offset
    gathered: list[Record] = []
    size = 0
    for values in decisions:
        if gathered and size + _size(values) > BATCH_BYTES_MAX:
            yield build_batch(gathered, leader_epoch=epoch)
            gathered, size = [], 0
        for value in values:
            if gathered and size + len(value) + RECORD_OVERHEAD_BYTES > BATCH_BYTES_MAX:
                yield build_batch(gathered, leader_epoch=epoch)
                gathered, size = [], 0
            gathered.append(Record(offset, now, None, value))
            offset += 1
            size += len(value) + RECORD_OVERHEAD_BYTES
    if gathered:
        yield build_batch(gathered, leader_epoch=epoch)


def _size(values: Sequence[bytes]) -> int:
    return sum(map(len, values)) + RECORD_OVERHEAD_BYTES * len(values)


def batches_in(data: bytes, path: str, first_position: int = 0) -> Iterator[tuple[int, Batch]]:
    """Each batch with its position; Damaged for a missing batch or a failed checksum."""
    position = first_position
    for batch in walk_batches(data):
        if not batch.is_valid:
            raise Damaged(path, position, "a batch whose checksum is wrong")
        yield position, batch
        position += batch.size
    if position < first_position + len(data):
        raise Damaged(path, position, "no whole batch begins here")


def read_metadata(
    batch: Batch, path: str, position: int
) -> Sequence[tuple[Offset, MetadataRecord]]:
    """The records of a data batch; Damaged if it holds anything else."""
    try:
        return [
            (record.offset, decode_record(record.value or b""))
            for record in read_records(batch, DECOMPRESSED_BYTES_MAX)
        ]
    except (BadRecords, ProtocolError) as error:
        raise Damaged(path, position, f"a batch of metadata: {error}") from error


def read_controls(batch: Batch, path: str, position: int) -> list[Control]:
    """The control records of a batch, without unknown types."""
    try:
        decoded = [
            decode_control(record.key or b"", record.value or b"")
            for record in read_records(batch, DECOMPRESSED_BYTES_MAX)
        ]
    except (BadRecords, ProtocolError) as error:
        raise Damaged(path, position, f"a control batch: {error}") from error
    return [found[1] for found in decoded if found is not None]
