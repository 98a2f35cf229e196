"""Parquet files of a Delta table, written by Spark's tasks; the driver adds them to the table.

A file is part of the table only once the table's log names it. Files of failed or losing attempts
are never read, and `vacuum` removes them.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

ROW_GROUP_BYTES: Final = 32 * 1024 * 1024  # Memory of a task before it writes.
COMPRESSION: Final = "zstd"
ADDED: Final = "path string, size long, modified_ms long, stats string"  # As a Spark schema.


class AddedFile(NamedTuple):
    """Description of a file that a task sends to the driver."""

    path: str  # Relative to the table's directory.
    size: int
    modified_ms: int
    stats: str  # In the format of Delta's log.


def file_writer(table_path: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """For `mapInArrow`: rows in, one row out that describes the file; none for no rows."""

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        added = write_file(table_path, batches)
        if added is not None:
            columns = [pa.array([value]) for value in added]
            yield pa.record_batch(columns, names=list(AddedFile._fields))

    return write


def write_file(table_path: str, batches: Iterable[Any]) -> AddedFile | None:
    """Write all rows to one new file of the table's directory; None if there are none."""
    name = f"part-{uuid.uuid4()}.{COMPRESSION}.parquet"
    filesystem, directory = _place(table_path)
    path = f"{directory}/{name}"
    groups = _row_groups(batches)
    first = next(groups, None)
    if first is None:
        return None
    collected: list[Any] = []
    with (
        filesystem.open_output_stream(path) as stream,
        pq.ParquetWriter(
            stream, first.schema, compression=COMPRESSION, metadata_collector=collected
        ) as writer,
    ):
        writer.write_table(first)
        for group in groups:
            writer.write_table(group)
    size = filesystem.get_file_info(path).size
    return AddedFile(name, size, int(time.time() * 1000), json.dumps(_stats(collected[0])))


def _place(table_path: str) -> tuple[Any, str]:
    if "://" in table_path:
        filesystem, directory = FileSystem.from_uri(table_path)
    else:
        filesystem, directory = FileSystem.from_uri(f"file://{table_path}")
    return filesystem, directory.rstrip("/")


def _row_groups(batches: Iterable[Any]) -> Iterator[Any]:
    """Combine Spark's batches into few large row groups."""
    held: list[Any] = []
    held_bytes = 0
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
            held_bytes += batch.nbytes
        if held_bytes >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held)
            held, held_bytes = [], 0
    if held:
        yield pa.Table.from_batches(held)


def _stats(metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    """Row count and the range of integer columns, by which readers skip files.

    Other types are left out: a truncated or wrongly rounded bound would hide rows.
    """
    lowest: dict[str, int] = {}
    highest: dict[str, int] = {}
    for index in range(metadata.num_columns):
        path = metadata.schema.column(index).path
        found = [
            metadata.row_group(group).column(index).statistics
            for group in range(metadata.num_row_groups)
        ]
        is_whole = all(
            part is not None and part.has_min_max and type(part.min) is int for part in found
        )
        if is_whole and "." not in path:
            lowest[path] = min(part.min for part in found)
            highest[path] = max(part.max for part in found)
    return {"numRecords": metadata.num_rows, "minValues": lowest, "maxValues": highest}
