from datetime import UTC, datetime

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from ottla.model.types import TopicPartition
from ottla.spark.source.planning import Range
from ottla.spark.source.pushdown import restriction

PLACE = TopicPartition("orders", 3)


def left(*filters: Filter) -> list[Filter]:
    return restriction(filters)[1]


def test_topics_and_partitions_are_chosen() -> None:
    made, rest = restriction(
        [
            In(("topic",), ["orders", "bills"]),
            GreaterThan(("partition",), 2),
            LessThanOrEqual(("partition",), 3),
            IsNotNull(("topic",)),
        ]
    )
    assert rest == []
    assert made.has_place(PLACE)
    assert made.has_place(TopicPartition("bills", 3))
    assert not made.has_place(TopicPartition("orders", 2))
    assert not made.has_place(TopicPartition("orders", 4))
    assert not made.has_place(TopicPartition("others", 3))


def test_filters_hold_all_at_once() -> None:
    made, _ = restriction([EqualTo(("topic",), "orders"), EqualTo(("topic",), "bills")])
    assert not made.has_place(PLACE)


def test_offsets_are_cut_exactly() -> None:
    made, rest = restriction([GreaterThanOrEqual(("offset",), 10), LessThan(("offset",), 20)])
    assert rest == []
    assert made.cut(Range(PLACE, 0, 100)) == Range(PLACE, 10, 20)
    assert made.cut(Range(PLACE, 15, 18)) == Range(PLACE, 15, 18)
    assert made.cut(Range(PLACE, 50, 100)).size == 0
    assert made.cut(Range(PLACE, 0, 5)).size == 0
    made, rest = restriction([EqualTo(("offset",), 7)])
    assert (made.cut(Range(PLACE, 0, 100)), rest) == (Range(PLACE, 7, 8), [])


def test_some_offsets_are_only_bounded() -> None:
    asked = In(("offset",), [5, 9])
    made, rest = restriction([asked])
    assert made.cut(Range(PLACE, 0, 100)) == Range(PLACE, 5, 10)
    assert rest == [asked], "Spark has to drop what lies between"


def test_a_time_moves_the_start_and_is_left_to_spark() -> None:
    asked = GreaterThan(("timestamp",), datetime(2026, 11, 1, tzinfo=UTC))
    made, rest = restriction([asked])
    assert rest == [asked]
    assert made.time_ms_min == 1_793_491_200_000 - 1
    upper = LessThan(("timestamp",), datetime(2026, 11, 1, tzinfo=UTC))
    made, rest = restriction([upper])
    assert (made.time_ms_min, rest) == (None, [upper])


def test_all_other_filters_are_spark_s() -> None:
    others = [
        EqualTo(("value",), b"x"),
        IsNotNull(("key",)),
        Not(EqualTo(("partition",), 1)),
        StringStartsWith(("topic",), "o"),
        EqualTo(("headers", "key"), "x"),
        EqualTo(("partition",), None),
    ]
    assert left(*others) == others
