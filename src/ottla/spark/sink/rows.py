"""Which columns a sink takes from a frame, by the names and types of Spark's own Kafka sink.

`value` must be there; `key`, `topic`, `partition`, `headers` and `timestamp` may be. Any other
column is left alone, as the connector does, so that what a source gave can be written as it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.spark.arrow.encoding import Integers, Rows, encode_headers
from ottla.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PIECE_BYTES: Final = 8 * 1024 * 1024  # What is encoded at once; Spark may hand over gigabytes.
NO_PARTITION: Final = -1
HEADERS: Final = "array<struct<key:string,value:binary>>"
TYPES: Final = {
    "key": ("binary", "string", "void"),
    "value": ("binary", "string", "void"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": (HEADERS, "void"),
    "timestamp": ("timestamp", "void"),
}


class Piece(NamedTuple):
    """Rows ready to be encoded, with what they say about where they go."""

    rows: Rows
    topics: Any  # A pyarrow.Array of strings, or None.
    partitions: Integers | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the columns are that records are made of."""

    topic: str | None  # That of all rows; it goes before a column, as the connector has it.
    positions: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, schema: "StructType", topic: str | None) -> "Layout":
        positions: dict[str, int] = {}
        for index, field in enumerate(schema.fields):
            name = field.name.lower()
            if name in TYPES:
                _check_type(name, field.dataType.simpleString())
                if field.dataType.simpleString() != "void":
                    positions[name] = index
        names = [field.name.lower() for field in schema.fields]
        if "value" not in names:
            found = ", ".join(field.name for field in schema.fields) or "none"
            raise SparkError(f"the frame has no column 'value': its columns are {found}")
        if topic is None and "topic" not in positions:
            raise SparkError("no topic is named: set option 'topic', or give rows a column 'topic'")
        return cls(topic, tuple(positions.items()))

    def pieces(self, batch: Any, now_ms: int) -> Iterator[Piece]:  # noqa: ANN401
        """The rows of an Arrow batch, so many at a time as are encoded at once."""
        size = max(1, PIECE_BYTES * batch.num_rows // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, size):
            yield self._piece(batch.slice(start, size), now_ms)

    def _piece(self, batch: Any, now_ms: int) -> Piece:  # noqa: ANN401
        columns = {name: batch.column(index) for name, index in self.positions}
        headers = columns.get("headers")
        rows = Rows(
            _binary(columns.get("key")),
            _binary(columns.get("value")),
            None if headers is None else encode_headers(headers),
            _stamps(columns.get("timestamp"), batch.num_rows, now_ms),
        )
        topics = None if self.topic is not None else columns["topic"]
        if topics is not None and topics.null_count:
            raise SparkError(
                "a row has no topic: its column 'topic' is null; fill it, or set option 'topic'"
            )
        partitions = columns.get("partition")
        return Piece(rows, topics, None if partitions is None else _numbers(partitions))


def _check_type(name: str, found: str) -> None:
    allowed = TYPES[name]
    is_text = found.startswith("string") and "string" in allowed  # With a collation or without.
    if found not in allowed and not is_text:
        named = [kind for kind in allowed if kind != "void"]
        raise SparkError(f"column {name!r} is of type {found}: it must be {' or '.join(named)}")


def _binary(column: Any) -> Any:  # noqa: ANN401
    if column is None or pa.types.is_binary(column.type):
        return column
    return column.cast(pa.binary())


def _stamps(column: Any, count: int, now_ms: int) -> Integers:  # noqa: ANN401
    if column is None:
        return np.full(count, now_ms, dtype=np.int64)
    micros = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    stamps: Integers = _filled(micros, now_ms * 1000).astype(np.int64) // 1000
    if stamps.min(initial=0) < 0:
        raise SparkError("a row's timestamp lies before 1970, which a record cannot hold")
    return stamps


def _numbers(column: Any) -> Integers:  # noqa: ANN401
    return _filled(column, NO_PARTITION).astype(np.int64)


def _filled(column: Any, value: int) -> Integers:  # noqa: ANN401
    if column.null_count:
        column = pc.fill_null(column, value)
    numbers: Integers = column.to_numpy(zero_copy_only=False)
    return numbers
