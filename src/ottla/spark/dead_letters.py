"""Separates good and bad rows: `split` parses values, and adds Connect's headers to bad rows.

A bad row keeps its key, value, time and headers, so that it can be processed again; it gets the
headers of Kafka Connect's dead letters, which existing tools can read. A record without a value is
a deletion and not a bad row.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ottla.spark.errors import SparkError, Unreadable

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

PREFIX: Final = "__connect.errors."
TOPIC: Final = PREFIX + "topic"
PARTITION: Final = PREFIX + "partition"
OFFSET: Final = PREFIX + "offset"
CONNECTOR: Final = PREFIX + "connector.name"
TASK: Final = PREFIX + "task.id"
STAGE: Final = PREFIX + "stage"
EXECUTING_CLASS: Final = PREFIX + "class.name"
EXCEPTION_CLASS: Final = PREFIX + "exception.class.name"
EXCEPTION_MESSAGE: Final = PREFIX + "exception.message"

CONVERTING: Final = "VALUE_CONVERTER"  # Connect's name for the stage that parses values.
OF_RECORDS: Final = (
    *("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"),
)
PARSED, CORRUPT, WHY = "__ottla_parsed", "__ottla_corrupt", "__ottla_why"
HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"


class Invalid(SparkError):
    """A record that can be parsed, but violates the schema or the condition."""


class Split:
    """`good, dead = split(...)`; or `together`, which reads the source once instead of twice."""

    def __init__(self, good: "DataFrame", dead: "DataFrame", together: "DataFrame") -> None:
        self.good = good
        self.dead = dead
        self.together = together

    def __iter__(self) -> "Iterator[DataFrame]":
        return iter((self.good, self.dead))


def split(
    frame: "DataFrame",
    schema: "str | StructType",
    *,
    dead_letter: str,
    topic: str | None = None,
    valid: str | None = None,
    into: str | None = None,
    name: str = "spark",
) -> Split:
    """Parse JSON values into columns; invalid rows go to the topic `dead_letter`.

    NOT NULL fields must be present, and the SQL condition `valid` must hold. Good rows go to
    `topic` if it is given, and keep their own otherwise. Fields become columns, or one column
    `into`. `name` is the connector name in the dead letters.
    """
    from pyspark.sql import functions as sql
    from pyspark.sql.types import StringType, StructField, StructType

    kind = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    _check(frame, kind, into)
    optional = [StructField(field.name, field.dataType) for field in kind.fields]
    target = StructType([*optional, StructField(CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    text = sql.col("value").cast("string")
    parsed = frame.withColumn(PARSED, sql.from_json(text, target, options))
    fields = {
        field.name: sql.col(f"{PARSED}.`{field.name}`").alias(field.name) for field in optional
    }
    if into is None:
        flat = parsed.select("*", *fields.values())
    else:
        flat = parsed.withColumn(into, sql.struct(*fields.values()))
    parsed = flat.withColumn(WHY, _why(kind, valid)).drop(PARSED)
    return _apart(parsed, [into] if into else list(fields), dead_letter, topic, name)


def _why(kind: "StructType", valid: str | None) -> "Column":
    """The error of a row, as (class, message); null for a good one."""
    from pyspark.sql import functions as sql

    value, parsed = sql.col("value"), sql.col(PARSED)
    text = value.cast("string")
    shape = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in kind.fields)
    is_unread = parsed.isNull() | sql.col(f"{PARSED}.{CORRUPT}").isNotNull()
    why = sql.when(value.isNull(), _reason(None, None))
    why = why.when(~sql.is_valid_utf8(text), _reason(Unreadable, "the value is not UTF-8"))
    why = why.when(is_unread, _reason(Unreadable, f"the value is no JSON of the form {shape}"))
    for field in kind.fields:
        if not field.nullable:
            is_missing = sql.col(f"{PARSED}.`{field.name}`").isNull()
            why = why.when(is_missing, _reason(Invalid, f"field {field.name!r} has no value"))
    if valid is not None:
        does_hold = sql.coalesce(sql.expr(valid), sql.lit(False))
        why = why.when(~does_hold, _reason(Invalid, f"the condition does not hold: {valid}"))
    return why


def _reason(kind: type | None, message: str | None) -> "Column":
    from pyspark.sql import functions as sql

    text = None if kind is None else f"{kind.__module__}.{kind.__qualname__}"
    whole = sql.struct(
        sql.lit(text).cast("string").alias("kind"), sql.lit(message).cast("string").alias("message")
    )
    return whole if kind is not None else sql.when(sql.lit(False), whole)


def _apart(
    parsed: "DataFrame", added: list[str], dead_letter: str, topic: str | None, name: str
) -> Split:
    from pyspark.sql import functions as sql

    is_dead = sql.col(WHY).isNotNull()
    columns = [column for column in parsed.columns if column != WHY]
    good_cells = {column: sql.col(f"`{column}`") for column in columns}
    for column, kind in (("topic", "string"), ("partition", "int"), ("headers", HEADERS_TYPE)):
        good_cells.setdefault(column, sql.lit(None).cast(kind))
    if topic is not None:
        good_cells |= {"topic": sql.lit(topic), "partition": sql.lit(None).cast("int")}
    dead_cells = {
        **good_cells,
        "topic": sql.lit(dead_letter),
        "partition": sql.lit(None).cast("int"),
        "headers": _headers(columns, name),
        **{column: sql.lit(None).cast(parsed.schema[column].dataType) for column in added},
    }
    both = {
        column: sql.when(is_dead, dead_cells[column]).otherwise(good_cells[column])
        for column in good_cells
    }

    def chosen(frame: "DataFrame", cells: "dict[str, Column]") -> "DataFrame":
        return frame.select(*[cell.alias(column) for column, cell in cells.items()])

    good = chosen(parsed.where(~is_dead), good_cells)
    dead = chosen(parsed.where(is_dead), dead_cells)
    return Split(good, dead, chosen(parsed, both))


def _headers(columns: list[str], name: str) -> "Column":
    """The record's own headers and Connect's; headers of an earlier failure are replaced."""
    from pyspark.sql import functions as sql

    texts: dict[str, Any] = {
        TOPIC: sql.col("topic") if "topic" in columns else None,
        PARTITION: sql.col("partition") if "partition" in columns else None,
        OFFSET: sql.col("offset") if "offset" in columns else None,
        CONNECTOR: sql.lit(name),
        TASK: sql.spark_partition_id(),
        STAGE: sql.lit(CONVERTING),
        EXECUTING_CLASS: sql.lit(f"{__name__}.split"),
        EXCEPTION_CLASS: sql.col(f"{WHY}.kind"),
        EXCEPTION_MESSAGE: sql.col(f"{WHY}.message"),
    }
    added = sql.array(
        *[
            sql.struct(
                sql.lit(header).alias("key"),
                text.cast("string").cast("binary").alias("value"),
            )
            for header, text in texts.items()
            if text is not None
        ]
    )
    if "headers" not in columns:
        return added
    own = sql.filter("headers", lambda header: ~header["key"].startswith(PREFIX))
    return sql.concat(sql.coalesce(own, sql.array().cast(HEADERS_TYPE)), added)


def _check(frame: "DataFrame", kind: "StructType", into: str | None) -> None:
    if "value" not in frame.columns:
        raise SparkError(f"there is no column 'value' to parse in {', '.join(frame.columns)}")
    for name in [into] if into else kind.fieldNames():
        if name in frame.columns or name in OF_RECORDS:
            raise SparkError(
                f"field {name!r} has the name of a column of the record:"
                " give one column for all fields with into="
            )
