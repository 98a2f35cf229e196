"""A group is where Kafka would look for it."""

import pytest

from ottla.groups.placement import (
    CACHED_ID_CHARACTERS_MAX,
    _cached_partition_of,
    java_hash,
    partition_of,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31)), ("😀", 1772899)],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


@pytest.mark.parametrize(
    ("group", "partition"),
    [("g-classic", 18), ("simple", 26), ("g-consumer", 32), ("reader", 39)],  # Seen in Kafka.
)
def test_a_group_is_in_the_partition_where_kafka_keeps_it(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


def test_the_smallest_hash_has_a_partition_too() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_long_group_ids_are_not_remembered() -> None:
    before = _cached_partition_of.cache_info().currsize
    group = "a long id".ljust(CACHED_ID_CHARACTERS_MAX + 1, "x")
    assert partition_of(group, 50) == abs(java_hash(group)) % 50
    assert _cached_partition_of.cache_info().currsize == before
    partition_of(group[:-1], 50)
    assert _cached_partition_of.cache_info().currsize == before + 1
