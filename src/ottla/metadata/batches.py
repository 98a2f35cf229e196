"""Metadata records as the batches that the log and its snapshots hold, and back.

Pure: bytes in, records out. A decision is one batch; one too large for that is several, between
BeginTransaction and EndTransaction, so that a crash in the middle leaves nothing of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import error as struct_error
from typing import Final

from ottla.metadata.features import has_transactions, record_version
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
from ottla.records.batch import Batch
from ottla.records.record import BadRecords, Record, build_batch, read_records

BATCH_BYTES_MAX: Final = 8 * 1024 * 1024  # As Kafka's leaders limit them.
DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024

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


def as_transaction(records: list[MetadataRecord], metadata_version: int) -> list[MetadataRecord]:
    """The records of one decision, wrapped if one batch cannot hold them."""
    sizes = (len(encode_record(r, record_version(r, metadata_version))) for r in records)
    if sum(sizes) + 16 * len(records) <= BATCH_BYTES_MAX:
        return records
    assert has_transactions(metadata_version), "decisions of this size need a newer cluster"
    return [BeginTransactionRecord(), *records, EndTransactionRecord()]


def data_batches(
    records: Iterable[MetadataRecord],
    base_offset: Offset,
    epoch: int,
    now: WallTime,
    metadata_version: int,
) -> Iterator[bytearray]:
    """As few batches as the limit allows."""
    gathered: list[Record] = []
    size = 0
    for offset, record in enumerate(records, base_offset):
        value = encode_record(record, record_version(record, metadata_version))
        if gathered and size + len(value) + 16 > BATCH_BYTES_MAX:
            yield build_batch(gathered, leader_epoch=epoch)
            gathered, size = [], 0
        gathered.append(Record(offset, now, None, value))
        size += len(value) + 16
    if gathered:
        yield build_batch(gathered, leader_epoch=epoch)


def batches_in(data: bytes, path: str, first_position: int = 0) -> Iterator[tuple[int, Batch]]:
    """Each batch with its place in the file; Damaged where there is none or its checksum fails."""
    position = 0
    while position < len(data):
        try:
            batch = Batch.parse(data, position)
        except (ValueError, struct_error) as error:
            raise Damaged(path, first_position + position, f"no whole batch: {error}") from None
        if not batch.is_valid:
            raise Damaged(path, first_position + position, "a batch whose checksum is wrong")
        yield first_position + position, batch
        position += batch.size


def read_metadata(
    batch: Batch, path: str, position: int
) -> Sequence[tuple[Offset, MetadataRecord]]:
    """The records of a data batch; Damaged where something else is there."""
    try:
        return [
            (record.offset, decode_record(record.value or b""))
            for record in read_records(batch, DECOMPRESSED_BYTES_MAX)
        ]
    except (BadRecords, ProtocolError) as error:
        raise Damaged(path, position, f"a batch of metadata: {error}") from error


def read_controls(batch: Batch, path: str, position: int) -> list[Control]:
    """The control records of a batch, without those of types from the future."""
    try:
        decoded = [
            decode_control(record.key or b"", record.value or b"")
            for record in read_records(batch, DECOMPRESSED_BYTES_MAX)
        ]
    except (BadRecords, ProtocolError) as error:
        raise Damaged(path, position, f"a control batch: {error}") from error
    return [found[1] for found in decoded if found is not None]
