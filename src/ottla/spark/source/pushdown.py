"""Filters of a query that need not be evaluated row by row: they choose partitions and offsets.

A filter on topic, partition or offset is carried out here entirely. One on the time only moves the
start, because records may be out of order; Spark still looks at each row that is left.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from ottla.model.types import Offset, TopicPartition
from ottla.spark.source.planning import Range

NEVER_NULL = {"topic", "partition", "offset", "timestamp", "timestampType"}
OFFSET_MAX = 2**63 - 1


@dataclass(slots=True)
class Restriction:
    """What the filters leave: all of them must hold."""

    topics: list[frozenset[str]] = field(default_factory=list)
    partitions: list[frozenset[int]] = field(default_factory=list)
    partition_min: int = 0
    partition_max: int = 2**31 - 1
    offset_min: Offset = 0
    offset_max: Offset = OFFSET_MAX  # The last that is read.
    time_ms_min: int | None = None

    def has_place(self, place: TopicPartition) -> bool:
        return (
            all(place.topic in names for names in self.topics)
            and all(place.partition in numbers for numbers in self.partitions)
            and self.partition_min <= place.partition <= self.partition_max
        )

    def cut(self, one: Range) -> Range:
        end = min(one.end, self.offset_max + 1)
        start = max(one.start, self.offset_min)
        return one._replace(start=min(start, end), end=end)

    def take(self, asked: Filter) -> bool:
        """Take a filter into account; True if nothing is left of it for Spark."""
        if isinstance(asked, IsNotNull):
            return len(asked.attribute) == 1 and asked.attribute[0] in NEVER_NULL
        attribute: tuple[str, ...] = getattr(asked, "attribute", ())
        if len(attribute) != 1:
            return False
        match attribute[0]:
            case "topic":
                return self._take_topic(asked)
            case "partition":
                return self._take_partition(asked)
            case "offset":
                return self._take_offset(asked)
            case "timestamp":
                self._take_timestamp(asked)
        return False

    def _take_topic(self, asked: Filter) -> bool:
        wanted = _equal_to(asked, str)
        if wanted is not None:
            self.topics.append(frozenset(wanted))
        return wanted is not None

    def _take_partition(self, asked: Filter) -> bool:
        wanted = _equal_to(asked, int)
        if wanted is not None:
            self.partitions.append(frozenset(wanted))
            return True
        low, high = _bounds(asked)
        if low is not None:
            self.partition_min = max(self.partition_min, low)
        if high is not None:
            self.partition_max = min(self.partition_max, high)
        return low is not None or high is not None

    def _take_offset(self, asked: Filter) -> bool:
        wanted = _equal_to(asked, int)
        if wanted is not None and len(wanted) > 1:
            # Offsets between the ones that are asked for are read as well: Spark drops them.
            self.offset_min = max(self.offset_min, min(wanted))
            self.offset_max = min(self.offset_max, max(wanted))
            return False
        low, high = (wanted[0], wanted[0]) if wanted else _bounds(asked)
        if low is not None:
            self.offset_min = max(self.offset_min, low)
        if high is not None:
            self.offset_max = min(self.offset_max, high)
        return low is not None or high is not None

    def _take_timestamp(self, asked: Filter) -> None:
        if not isinstance(asked, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual):
            return
        if isinstance(asked.value, datetime):
            value = asked.value if asked.value.tzinfo else asked.value.replace(tzinfo=UTC)
            time_ms = int(value.timestamp() * 1000) - 1  # Below the fraction, never above it.
            if time_ms >= 0:
                self.time_ms_min = max(self.time_ms_min or 0, time_ms)


def restriction(filters: Iterable[Filter]) -> tuple[Restriction, list[Filter]]:
    """What is carried out here, and the filters that are left to Spark."""
    made = Restriction()
    return made, [asked for asked in filters if not made.take(asked)]


def _equal_to(asked: Filter, kind: type) -> list[Any] | None:
    """The values of which the column must have one, if that is what the filter says."""
    if isinstance(asked, EqualTo | EqualNullSafe):
        values = [asked.value]
    elif isinstance(asked, In):
        values = [value for value in asked.value if value is not None]
    else:
        return None
    is_right = values and all(isinstance(value, kind) for value in values)
    return values if is_right else None


def _bounds(asked: Filter) -> tuple[int | None, int | None]:
    """The least and the greatest number that a comparison allows."""
    value = getattr(asked, "value", None)
    if not isinstance(value, int):
        return None, None
    if isinstance(asked, GreaterThan | GreaterThanOrEqual):
        return value + isinstance(asked, GreaterThan), None
    if isinstance(asked, LessThan | LessThanOrEqual):
        return None, value - isinstance(asked, LessThan)
    return None, None
