"""Prints the batches and records of a segment, in constant memory."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from ottla.cli.tasks.timestamps import show_moment
from ottla.cli.views.record_text import control_text, metadata_text, plain_json, plain_text
from ottla.cli.views.terminal import note, plural, say, show_json
from ottla.model.errors import ProtocolError
from ottla.model.types import Offset
from ottla.records.batch import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    OFFSET_AND_LENGTH,
    Batch,
)
from ottla.records.compression import Codec
from ottla.records.record import BadRecords, Record, read_records

DECOMPRESSED_BYTES_MAX = 1024 * 1024 * 1024
BATCH_BYTES_MAX = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    has_records: bool = True
    offset: Offset = 0
    batches_max: int | None = None
    is_metadata: bool | None = None

    def as_metadata(self, is_metadata: bool) -> "Wanted":
        """The kind of records by the file's directory, unless an option says otherwise."""
        return self if self.is_metadata is not None else replace(self, is_metadata=is_metadata)


class NoBatch(Exception):
    """The file has no complete batch from some byte on."""


def show_segment(path: str, wanted: Wanted, *, as_json: bool) -> int:
    """Print a segment; returns the number of damaged parts."""
    damages = shown = 0
    size = os.path.getsize(path)
    if not as_json:
        say(f"{path}: {size:,} bytes")
    try:
        with open(path, "rb") as file:
            for position, batch in _walk(file, size):
                if batch.last_offset < wanted.offset:
                    continue
                if shown == wanted.batches_max:
                    break
                shown += 1
                damages += _show_batch(position, batch, wanted, as_json=as_json)
    except NoBatch as failure:
        note(f"ottla: {path}: {failure}")
        damages += 1
    return damages


def _walk(file: BinaryIO, size: int) -> Iterator[tuple[int, Batch]]:
    position = 0
    while position < size:
        file.seek(position)
        start = file.read(LOG_OVERHEAD_BYTES)
        if len(start) < LOG_OVERHEAD_BYTES:
            raise NoBatch(f"{size - position} bytes at byte {position} are no whole batch")
        _, length = OFFSET_AND_LENGTH.unpack(start)
        rest = size - position - LOG_OVERHEAD_BYTES
        if length < HEADER_BYTES - LOG_OVERHEAD_BYTES or length > BATCH_BYTES_MAX:
            raise NoBatch(f"no batch begins at byte {position} ({rest:,} more bytes follow)")
        if length > rest:
            raise NoBatch(
                f"the batch at byte {position} is torn: {length:,} bytes long, {rest:,} are there"
            )
        batch = Batch(start + file.read(length))
        if batch.magic != MAGIC:
            raise NoBatch(f"the batch at byte {position} has format {batch.magic}, not {MAGIC}")
        yield position, batch
        position += batch.size


def _show_batch(position: int, batch: Batch, wanted: Wanted, *, as_json: bool) -> int:
    damages = 0 if batch.is_valid else 1
    shown = _batch_json(position, batch)
    if not as_json:
        say(_batch_text(position, batch))
    if wanted.has_records and not damages:
        records: list[dict[str, object]] = []
        try:
            for record in read_records(batch, DECOMPRESSED_BYTES_MAX):
                text, fields = _record(record, batch, is_metadata=bool(wanted.is_metadata))
                if as_json:
                    records.append(fields)
                else:
                    say(f"  {text}")
        except (BadRecords, ProtocolError) as failure:
            note(f"ottla: in the batch at byte {position}: {failure}")
            damages += 1
        shown["records"] = records
    if as_json:
        show_json(shown)
    return damages


def _batch_text(position: int, batch: Batch) -> str:
    parts = [
        f"offsets {batch.base_offset} to {batch.last_offset}"
        if batch.last_offset_delta
        else f"offset {batch.base_offset}",
        plural(batch.count, "record"),
        f"at byte {position}",
        f"{batch.size:,} bytes",
        f"epoch {batch.leader_epoch}",
    ]
    if batch.max_timestamp >= 0:
        kind = "append time" if batch.is_log_append_time else "time"
        parts.append(f"{kind} {show_moment(batch.max_timestamp)}")
    if batch.codec:
        parts.append(_codec(batch))
    if batch.producer_id >= 0:
        parts.append(f"producer {batch.producer_id} epoch {batch.producer_epoch}")
        if batch.base_sequence >= 0:
            parts.append(f"sequence {batch.base_sequence} to {batch.last_sequence}")
    if batch.is_transactional:
        parts.append("transactional")
    if batch.is_control:
        parts.append("control")
    if not batch.is_valid:
        parts.append("CHECKSUM WRONG")
    return ", ".join(parts)


def _batch_json(position: int, batch: Batch) -> dict[str, object]:
    return {
        "position": position,
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "count": batch.count,
        "bytes": batch.size,
        "leader_epoch": batch.leader_epoch,
        "base_timestamp": batch.base_timestamp,
        "max_timestamp": batch.max_timestamp,
        "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
        "compression": _codec(batch),
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "transactional": batch.is_transactional,
        "control": batch.is_control,
        "crc": batch.crc,
        "valid": batch.is_valid,
    }


def _codec(batch: Batch) -> str:
    try:
        return Codec(batch.codec).name.lower()
    except ValueError:
        return f"codec {batch.codec}"


def _record(record: Record, batch: Batch, *, is_metadata: bool) -> tuple[str, dict[str, object]]:
    if batch.is_control:
        return control_text(record)
    if is_metadata:
        return metadata_text(record)
    return plain_text(record), plain_json(record)
