import random

import numpy as np
import pytest

from ottla.records.record import Record, encode_record
from ottla.spark.arrow import record_walk
from ottla.spark.arrow.record_walk import record_starts


def batches_of(sizes: list[list[int]]) -> tuple[bytes, list[int], list[int], list[int], list[int]]:
    """Records of these sizes; where batches start and end, how many records, where each starts."""
    data = bytearray(b"\xff" * 7)  # What lies before the first and between batches is not records.
    starts, ends, records = [], [], []
    for batch in sizes:
        starts.append(len(data))
        for number, size in enumerate(batch):
            records.append(len(data))
            data += encode_record(
                Record(number, 0, None, bytes(size)), base_offset=0, base_timestamp=0
            )
        ends.append(len(data))
        data += b"\xff" * 5
    return bytes(data[:-5]), starts, ends, [len(batch) for batch in sizes], records


def walk(data: bytes, starts: list[int], ends: list[int], counts: list[int]) -> list[int]:
    array = np.frombuffer(data, np.uint8)
    arguments = [np.array(item, np.int64) for item in (starts, ends, counts)]
    return record_starts(data, array, *arguments).tolist()


@pytest.mark.parametrize(
    "sizes",
    [
        [[10] * 40] * 80,
        [[10, 60, 61, 62, 63, 64, 100, 8000] * 3] * 100,
        [[5] * count for count in range(60)] * 3,
        [[10, 8200, 20]] * 90,
        [[1000] * 900, [1000] * 33 + [1001] * 900 + [1000], [500] * 32, [500] * 33],
        [[16_000] * 40 + [32_384] * 40 + [16_000] * 40],
        [[10, 3_000_000, 20], [1]],
        [[0]],
        [[]],
    ],
    ids=[
        "even",
        "one and two bytes",
        "uneven",
        "large",
        "alike",
        "alike in two bytes",
        "huge",
        "one",
        "none",
    ],
)
def test_every_start_is_found(sizes: list[list[int]]) -> None:
    data, starts, ends, counts, records = batches_of(sizes)
    assert walk(data, starts, ends, counts) == records


def test_both_ways_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(7)
    monkeypatch.setattr(record_walk, "LANE_RECORDS", 4)
    for _ in range(40):
        large = source.choice([8, 60])
        sizes = [
            [source.choice([0, 3, 50, 57, 58, 120, 300]) for _ in range(source.randrange(large))]
            for _ in range(source.randrange(1, 60))
        ]
        data, starts, ends, counts, records = batches_of(sizes)
        monkeypatch.setattr(record_walk, "LANES_MIN", 1)
        together = walk(data, starts, ends, counts)
        monkeypatch.setattr(record_walk, "LANES_MIN", 10**9)
        assert together == walk(data, starts, ends, counts) == records


def test_values_that_look_like_records_do_not_break_the_walk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guesses within such values are wrong, and must be found to be."""
    inner = b"".join(
        encode_record(Record(n, 0, b"k", b"v" * 5), base_offset=0, base_timestamp=0)
        for n in range(9)
    )
    wrong = 0
    for shift in range(20):
        made = [Record(n, n, None, bytes(shift) + inner) for n in range(600)]
        body = b"".join(encode_record(r, base_offset=0, base_timestamp=0) for r in made)
        array = np.frombuffer(body, np.uint8)
        words = np.lib.stride_tricks.as_strided(
            array[:2].view("<u2"), shape=(len(array) - 1,), strides=(1,)
        )
        limits = (np.array([0]), np.array([len(body)]), np.array([len(made)]))
        monkeypatch.setattr(record_walk, "LANES_MIN", 10**9)
        expected = record_starts(body, array, *limits)
        lanes = record_walk._lanes(array, words, *limits)
        wrong += len(set(lanes.tolist()) - set(expected.tolist()))
        monkeypatch.setattr(record_walk, "LANES_MIN", 1)
        assert (record_starts(body, array, *limits) == expected).all()
    assert wrong, "else nothing was tested"


@pytest.mark.parametrize("batches", [1, 200])
def test_lengths_that_do_not_add_up_are_refused(batches: int) -> None:
    data, starts, ends, counts, _ = batches_of([[10] * 5] * batches)
    ends[0] -= 1
    with pytest.raises(ValueError, match="5 records end at byte"):
        walk(data, starts, ends, counts)


@pytest.mark.parametrize("change", [-1, 1])
def test_one_record_less_or_more_among_many_alike_is_refused(change: int) -> None:
    data, starts, ends, counts, _ = batches_of([[1000] * 300])
    counts[0] += change
    with pytest.raises((IndexError, ValueError)):
        walk(data, starts, ends, counts)


def test_a_length_beyond_the_buffer_is_refused() -> None:
    with pytest.raises((IndexError, ValueError)):
        walk(b"\xff\xff\xff", [0], [3], [2])
