"""Prints a file of a data directory; Kafka's file name determines its kind."""

import os
import re
from collections.abc import Sequence

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.timestamps import show_moment
from ottla.cli.views.segment_view import Wanted, show_segment
from ottla.cli.views.terminal import note, plural, say, show_json, show_table
from ottla.model.types import Offset
from ottla.storage.checkpoint import decode_epochs, decode_offsets
from ottla.storage.files import (
    INDEX,
    LEADER_EPOCHS,
    LOG,
    PARTITION_METADATA,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    parse_file_name,
)
from ottla.storage.index import (
    OFFSET_ENTRY_BYTES,
    TIME_ENTRY_BYTES,
    BadIndex,
    OffsetIndex,
    TimeIndex,
)
from ottla.storage.producer_snapshot import BadSnapshot, decode_snapshot
from ottla.storage.transaction_index import TransactionIndex

METADATA_DIRECTORY = "__cluster_metadata-"
METADATA_SNAPSHOT = re.compile(r"(\d{20}-\d{10}|bootstrap)\.checkpoint(\.part|\.deleted)?")
OFFSET_CHECKPOINT = re.compile(r".+-offset-checkpoint")
TEXTS = {PARTITION_METADATA, "meta.properties", "quorum-state", ".kafka_cleanshutdown"}
ANY_SIZE = 2**31  # An index is printed without its segment.

Rows = list[list[object]]
Table = tuple[Sequence[str], Rows]  # Column names as in JSON, and rows.


def show_file(path: str, wanted: Wanted, *, as_json: bool) -> int:
    """Print a file; returns the number of damaged parts."""
    directory, name = os.path.split(os.path.abspath(path))
    if METADATA_SNAPSHOT.fullmatch(name):
        return show_segment(path, wanted.as_metadata(True), as_json=as_json)
    parsed = parse_file_name(name)
    if name.endswith(LOG) or (parsed is not None and parsed[1] == LOG):
        is_metadata = os.path.basename(directory).startswith(METADATA_DIRECTORY)
        return show_segment(path, wanted.as_metadata(is_metadata), as_json=as_json)
    with open(path, "rb") as file:
        content = file.read()
    try:
        columns, rows = _read(path, name, content, parsed)
    except (BadIndex, BadSnapshot) as failure:
        note(f"ottla: {path} is damaged: {failure}")
        return 1
    if as_json:
        keys = [column.rstrip(">").lower().replace(" ", "_") for column in columns]
        for row in rows:
            show_json(dict(zip(keys, row, strict=True)))
    else:
        say(f"{path}: {plural(len(rows), 'row')}")
        if rows:
            show_table(columns, [_readable(columns, row) for row in rows])
    return 0


def _read(path: str, name: str, content: bytes, parsed: tuple[Offset, str, str] | None) -> Table:
    if parsed is not None:
        offset, kind, _ = parsed
        if kind == INDEX:
            return _offset_index(content, offset)
        if kind == TIME_INDEX:
            return _time_index(content, offset)
        if kind == TRANSACTION_INDEX:
            return _transaction_index(content, offset)
        if kind == PRODUCER_SNAPSHOT:
            return _producer_snapshot(content)
    if name == LEADER_EPOCHS:
        return ["Epoch>", "Start offset>"], [list(entry) for entry in decode_epochs(path, content)]
    if OFFSET_CHECKPOINT.fullmatch(name):
        offsets = decode_offsets(path, content)
        return ["Topic", "Partition>", "Offset>"], [[*tp, offset] for tp, offset in offsets.items()]
    if name in TEXTS:
        return ["Text"], [[line] for line in content.decode(errors="replace").splitlines()]
    raise Misuse(
        f"{path}: not a file that this can show: a .log, .index, .timeindex, .txnindex,"
        " .snapshot or .checkpoint file, or a checkpoint of offsets or epochs"
    )


def _offset_index(content: bytes, base_offset: Offset) -> Table:
    index = OffsetIndex.decode(_written(content, OFFSET_ENTRY_BYTES), base_offset, ANY_SIZE)
    return ["Offset>", "Position>"], [list(entry) for entry in index.entries()]


def _time_index(content: bytes, base_offset: Offset) -> Table:
    index = TimeIndex.decode(_written(content, TIME_ENTRY_BYTES), base_offset)
    return ["Timestamp", "Offset>"], [list(entry) for entry in index.entries()]


def _transaction_index(content: bytes, base_offset: Offset) -> Table:
    index = TransactionIndex.decode(content, base_offset)
    columns = ["Producer id>", "First offset>", "Last offset>", "Last stable offset>"]
    return columns, [list(entry) for entry in index.entries]


def _producer_snapshot(content: bytes) -> Table:
    rows: Rows = []
    for producer_id, producer in sorted(decode_snapshot(content).items()):
        last = producer.batches[-1] if producer.batches else None
        rows.append(
            [
                producer_id,
                producer.epoch,
                producer.last_sequence,
                last.last_offset if last else -1,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_start,
            ]
        )
    columns = [
        "Producer id>",
        "Epoch>",
        "Last sequence>",
        "Last offset>",
        "Last timestamp",
        "Coordinator epoch>",
        "Transaction start>",
    ]
    return columns, rows


def _written(content: bytes, entry_bytes: int) -> bytes:
    """An index without the zeros that a running Kafka preallocates."""
    used = len(content.rstrip(b"\0"))
    return content[: -(-used // entry_bytes) * entry_bytes]


def _readable(columns: Sequence[str], row: list[object]) -> list[object]:
    return [
        show_moment(cell) if "imestamp" in column and isinstance(cell, int) else cell
        for column, cell in zip(columns, row, strict=True)
    ]
