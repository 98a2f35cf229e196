"""What the tests of the sink share: rows as Spark hands them over, and a broker that fails."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.records.record import Record
from ottla.spark.arrow.encoding import Body, Rows, encode
from ottla.spark.sink.rows import Layout
from ottla.testing import Broker

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "headers": HEADERS,
    "timestamp": pa.timestamp("us", "UTC"),
}


def arrow(**columns: Sequence[Any]) -> Any:  # noqa: ANN401
    names = list(columns)
    return pa.record_batch([pa.array(columns[n], TYPES[n]) for n in names], names)


def layout(batch: Any, topic: str | None) -> Layout:  # noqa: ANN401
    return Layout(topic, tuple((name, index) for index, name in enumerate(batch.schema.names)))


def body(*values: bytes) -> Body:
    import numpy as np

    stamps = np.full(len(values), 5, dtype=np.int64)
    (made,) = encode(Rows(None, pa.array(values, pa.binary()), None, stamps), [0])
    return made


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


def numbered(count: int, start: int = 0) -> list[Record]:
    return [Record(index, 5, None, b"%d" % index) for index in range(start, start + count)]
