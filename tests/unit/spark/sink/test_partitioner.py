import random
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.partitioner import murmur2 as plain
from ottla.client.partitioner import partition_of_key
from ottla.spark.sink.partitioner import StickyRows, murmur2, partitions_of_keys

KEYS = st.lists(st.none() | st.binary(max_size=40), min_size=1, max_size=50)


@given(KEYS)
def test_hashes_are_those_of_kafkas_clients(keys: list[bytes | None]) -> None:
    hashes = murmur2(pa.array(keys, pa.binary()))
    assert hashes.tolist() == [plain(key or b"") for key in keys]


@given(KEYS, st.integers(0, 49))
def test_a_slice_of_keys_is_hashed_as_such(keys: list[bytes | None], start: int) -> None:
    hashes = murmur2(pa.array(keys, pa.binary())[start:])
    assert hashes.tolist() == [plain(key or b"") for key in keys[start:]]


def test_keys_go_where_every_client_puts_them() -> None:
    keys = [b"%d" % number for number in range(1000)]
    chosen = partitions_of_keys(pa.array(keys, pa.binary()), 7)
    assert chosen.tolist() == [partition_of_key(key, 7) for key in keys]


def test_rows_without_keys_fill_a_batch_and_move_on() -> None:
    sticky = StickyRows(1000, random.Random(1))
    sizes = np.full(35, 100, dtype=np.int64)
    first = sticky.choose("t", [0, 1, 2], sizes).tolist()
    assert [len(set(first[start : start + 10])) for start in range(0, 35, 10)] == [1, 1, 1, 1]
    assert set(first) == {0, 1, 2}
    more = sticky.choose("t", [0, 1, 2], sizes).tolist()
    assert more[:5] == first[-5:], "the batch that was begun is filled first"
    assert more[5] != more[4]


def test_rows_without_keys_only_go_where_there_is_a_leader() -> None:
    sticky = StickyRows(10, random.Random(1))
    chosen = sticky.choose("t", [4, 9], np.full(100, 7, dtype=np.int64))
    assert set(chosen.tolist()) == {4, 9}


def test_small_tasks_spread_over_all_partitions() -> None:
    sticky = StickyRows(1 << 20, random.Random(1))
    found: Counter[int] = Counter()
    for _ in range(300):
        sticky.next_task()
        found.update(sticky.choose("t", [0, 1, 2], np.array([10], dtype=np.int64)).tolist())
    assert min(found[partition] for partition in range(3)) > 50
