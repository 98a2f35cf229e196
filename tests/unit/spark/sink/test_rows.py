import datetime as dt

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark.errors import SparkError
from ottla.spark.sink.rows import PIECE_BYTES, Layout
from tests.unit.spark.sink_world import arrow, layout

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def schema(**columns: object) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def test_every_column_of_kafkas_sink_is_taken() -> None:
    found = Layout.of(
        schema(
            key=StringType(),
            Value=BinaryType(),
            topic=StringType(),
            partition=IntegerType(),
            offset=LongType(),
            headers=ArrayType(HEADER),
            timestamp=TimestampType(),
        ),
        None,
    )
    expected = {"key": 0, "value": 1, "topic": 2, "partition": 3, "headers": 5, "timestamp": 6}
    assert dict(found.positions) == expected


def test_a_column_of_nothing_counts_as_none() -> None:
    found = Layout.of(schema(key=NullType(), value=StringType()), "t")
    assert dict(found.positions) == {"value": 1}


@pytest.mark.parametrize(
    ("columns", "topic", "sentence"),
    [
        ({"key": BinaryType()}, "t", "no column 'value': its columns are key"),
        ({"value": LongType()}, "t", "column 'value' is of type bigint: it must be binary or str"),
        ({"value": StringType()}, None, "no topic is named: set option 'topic'"),
        ({"value": StringType(), "partition": LongType()}, "t", "'partition' is of type bigint"),
        ({"value": StringType(), "headers": StringType()}, "t", "it must be array<struct<key:str"),
        ({"value": StringType(), "topic": BinaryType()}, None, "'topic' is of type binary"),
    ],
)
def test_what_is_wrong_with_a_frame_is_told(
    columns: dict[str, object], topic: str | None, sentence: str
) -> None:
    with pytest.raises(SparkError, match=sentence):
        Layout.of(schema(**columns), topic)


def test_nulls_become_the_time_of_writing_and_no_partition() -> None:
    moment = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
    batch = arrow(value=[b"a", b"b"], partition=[None, 3], timestamp=[None, moment])
    (piece,) = layout(batch, "t").pieces(batch, now_ms=77)
    assert piece.partitions is not None
    assert piece.partitions.tolist() == [-1, 3]
    assert piece.rows.timestamps_ms.tolist() == [77, int(moment.timestamp() * 1000)]
    assert piece.rows.headers is None
    assert piece.topics is None


def test_a_row_without_a_topic_is_refused() -> None:
    batch = arrow(value=[b"a"], topic=[None])
    with pytest.raises(SparkError, match="a row has no topic"):
        list(layout(batch, None).pieces(batch, 0))


def test_a_time_before_1970_is_refused() -> None:
    batch = arrow(value=[b"a"], timestamp=[dt.datetime(1969, 1, 1, tzinfo=dt.UTC)])
    with pytest.raises(SparkError, match="before 1970"):
        list(layout(batch, "t").pieces(batch, 0))


def test_much_is_taken_in_pieces() -> None:
    batch = arrow(value=[bytes(1 << 20)] * 80)
    pieces = list(layout(batch, "t").pieces(batch, 0))
    assert sum(len(piece.rows.value) for piece in pieces) == 80
    assert all(piece.rows.value.nbytes <= PIECE_BYTES for piece in pieces)
    assert len(pieces) == 12
