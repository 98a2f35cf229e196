"""Records go where Kafka's other clients would send them."""

import random
import warnings

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.partitioner import StickyPartitions, murmur2, partition_of_key

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # It reads its own version in a deprecated way.
    from kafka.partitioner.default import murmur2 as other_murmur2


@given(st.binary(max_size=70))
def test_murmur2_agrees_with_another_client(data: bytes) -> None:
    assert murmur2(data) == other_murmur2(data)


@given(st.binary(max_size=20), st.integers(1, 50))
def test_a_key_has_the_partition_that_other_clients_give_it(key: bytes, partitions: int) -> None:
    assert partition_of_key(key, partitions) == (other_murmur2(key) & 0x7FFFFFFF) % partitions


def test_records_without_a_key_stick_to_one_partition_until_a_batch_is_sent() -> None:
    sticky = StickyPartitions(random.Random(1))
    first = sticky.choose("t", range(50))
    assert {sticky.choose("t", range(50)) for _ in range(20)} == {first}
    seen = set()
    for _ in range(20):
        seen.add(chosen := sticky.choose("t", range(50)))
        sticky.batch_sent("t", chosen)
    assert len(seen) > 5


def test_a_sent_batch_of_another_partition_changes_nothing() -> None:
    sticky = StickyPartitions(random.Random(2))
    first = sticky.choose("t", range(50))
    sticky.batch_sent("t", (first + 1) % 50)
    assert sticky.choose("t", range(50)) == first


def test_a_partition_that_is_gone_is_left() -> None:
    sticky = StickyPartitions(random.Random(3))
    sticky.choose("t", [7])
    assert sticky.choose("t", [8]) == 8
