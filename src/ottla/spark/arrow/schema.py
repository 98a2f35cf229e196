"""The columns of the source: those of Spark's Kafka source, for Spark and for Arrow.

Spark compares the two strictly, including nullability, so each is written out here once.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
WITH_HEADERS = (*COLUMNS, "headers")

HEADERS = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)
ARROW = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS,
}


def arrow_schema(columns: Sequence[str]) -> "pa.Schema":
    return pa.schema([pa.field(name, ARROW[name]) for name in columns])


def spark_schema(columns: Sequence[str]) -> "StructType":
    """Built from classes: parsing a DDL string would need a JVM, and workers have none."""
    from pyspark.sql import types

    header = types.StructType(
        [
            types.StructField("key", types.StringType()),
            types.StructField("value", types.BinaryType()),
        ]
    )
    kinds = {
        "key": types.BinaryType(),
        "value": types.BinaryType(),
        "topic": types.StringType(),
        "partition": types.IntegerType(),
        "offset": types.LongType(),
        "timestamp": types.TimestampType(),
        "timestampType": types.IntegerType(),
        "headers": types.ArrayType(header),
    }
    return types.StructType([types.StructField(name, kinds[name]) for name in columns])
