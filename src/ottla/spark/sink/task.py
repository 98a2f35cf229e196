"""What one task of a sink does: Arrow batches in, record batches to the right partitions out.

A Python worker of Spark runs many tasks, one after the other. Connections and the producer's id are
kept from one to the next, so that a micro-batch of few rows costs no handshakes, and a broker does
not have to remember a new producer for every task.
"""

import random
import time
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ottla.client.metadata import UnknownPartition
from ottla.model.types import TopicPartition
from ottla.spark.arrow.encoding import Integers, Rows, encode, record_sizes
from ottla.spark.errors import SparkError
from ottla.spark.options import Access
from ottla.spark.sink.cluster import SinkCluster
from ottla.spark.sink.partitioner import StickyRows, partitions_of_keys
from ottla.spark.sink.producer import SinkProducer, SinkSettings
from ottla.spark.sink.rows import Layout, Piece

Codes = npt.NDArray[np.signedinteger[Any]]

BATCH_OVERHEAD_BYTES: Final = 61
RADIX_MAX: Final = 1 << 15  # Numbers below are sorted without comparing them.


class SinkTask:
    def __init__(self, access: Access, settings: SinkSettings) -> None:
        self._settings = settings
        self._cluster = SinkCluster(access, is_patient=True)
        self._producer = SinkProducer(self._cluster, settings)
        source = random.Random()  # noqa: S311  It spreads load; it guards nothing.
        self._sticky = StickyRows(settings.batch_bytes_max, source)

    def write(self, batches: Iterable[Any], layout: Layout) -> int:
        """Write all rows; returns how many, when every one of them is confirmed."""
        self._sticky.next_task()
        count = 0
        for batch in batches:
            count += batch.num_rows
            for piece in layout.pieces(batch, int(time.time() * 1000)):
                self._write(piece, layout.topic)
        self._producer.flush()
        return count

    def close(self) -> None:
        self._cluster.close()

    def _write(self, piece: Piece, topic: str | None) -> None:
        sizes = record_sizes(piece.rows)
        self._check_sizes(sizes)
        places, codes = self._routes(piece, topic, sizes)
        rows = piece.rows
        if (np.diff(codes) < 0).any():  # Rows of a partition stay in order: the sort is stable.
            small = codes.astype(np.int16) if len(places) < RADIX_MAX else codes
            order = np.argsort(small, kind="stable")
            rows, sizes, codes = _reordered(rows, order), sizes[order], codes[order]
        starts: list[int] = []
        borders = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        for start, end in pairwise(borders):
            bytes_max = self._batch_bytes_max(places[codes[start]].topic)
            starts += _batch_starts(sizes, start, end, bytes_max - BATCH_OVERHEAD_BYTES)
        for first, body in zip(starts, encode(rows, starts), strict=True):
            self._producer.write(places[codes[first]], body)

    def _routes(
        self, piece: Piece, topic: str | None, sizes: Integers
    ) -> tuple[list[TopicPartition], Codes]:
        """Every partition that rows may go to, and for each row the index of its own."""
        if topic is not None:
            names, indexes = [topic], np.zeros(len(sizes), dtype=np.int64)
        else:
            encoded = piece.topics.dictionary_encode()
            names = encoded.dictionary.to_pylist()
            indexes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        places: list[TopicPartition] = []
        codes = np.empty(len(sizes), dtype=np.int64)
        for index, name in enumerate(names):
            rows = np.flatnonzero(indexes == index) if len(names) > 1 else None
            chosen = self._partitions(piece, name, sizes, rows)
            codes[slice(None) if rows is None else rows] = len(places) + chosen
            count = len(self._cluster.topic(name).partitions)
            places += [TopicPartition(name, partition) for partition in range(count)]
        return places, codes

    def _partitions(
        self, piece: Piece, name: str, sizes: Integers, rows: Integers | None
    ) -> Integers:
        """The partition of each of these rows, which all go to the topic `name`."""
        topic = self._cluster.topic(name)
        count = len(topic.partitions)
        keys = piece.rows.key
        named = piece.partitions
        if rows is not None:
            sizes = sizes[rows]
            keys = None if keys is None else keys.take(rows)
            named = None if named is None else named[rows]
        chosen = np.full(len(sizes), -1, dtype=np.int64) if named is None else named.copy()
        if named is not None and (named.max() >= count or named.min() < -1):
            wrong = named[(named >= count) | (named < -1)][0]
            raise SparkError(f"a row names its partition: {UnknownPartition(name, wrong, count)}")
        is_open = chosen < 0
        if keys is not None and is_open.any():
            is_keyed = is_open & keys.is_valid().to_numpy(zero_copy_only=False)
            chosen = np.where(is_keyed, partitions_of_keys(keys, count), chosen)
            is_open = chosen < 0
        if is_open.any():
            available = topic.led or sorted(topic.partitions)
            chosen[is_open] = self._sticky.choose(name, available, sizes[is_open])
        return chosen

    def _batch_bytes_max(self, topic: str) -> int:
        known = self._producer.batch_bytes_max.get(topic, self._settings.batch_bytes_max)
        return min(known, self._settings.batch_bytes_max)

    def _check_sizes(self, sizes: Integers) -> None:
        limit = self._settings.record_bytes_max
        if limit is not None and sizes.max(initial=0) > limit:
            raise SparkError(
                f"a record of {sizes.max()} bytes is larger than option 'kafka.max.request.size',"
                f" which is {limit}"
            )


def _batch_starts(sizes: Integers, start: int, end: int, bytes_max: int) -> list[int]:
    """Where batches begin, so that none is larger than allowed unless by a single record."""
    ends = np.cumsum(sizes[start:end])
    starts = [start]
    while True:
        before = int(ends[starts[-1] - start - 1]) if starts[-1] > start else 0
        after = start + int(np.searchsorted(ends, before + bytes_max, side="right"))
        following = max(after, starts[-1] + 1)
        if following >= end:
            return starts
        starts.append(following)


def _reordered(rows: Rows, order: Integers) -> Rows:
    key, value, headers = (None if item is None else item.take(order) for item in rows[:3])
    return Rows(key, value, headers, rows.timestamps_ms[order])


_kept: dict[tuple[Access, SinkSettings], SinkTask] = {}


def write(access: Access, settings: SinkSettings, batches: Iterable[Any], layout: Layout) -> int:
    """Run a task with what an earlier one left open; returns how many rows were written."""
    task = _kept.pop((access, settings), None) or SinkTask(access, settings)
    try:
        count = task.write(batches, layout)
    except BaseException:
        task.close()  # What it has under way belongs to nobody: the next one begins anew.
        raise
    _kept[access, settings] = task
    return count
