"""Which partition each row goes to: Kafka's choice for a key, computed for whole columns.

A row that names its partition goes there; one with a key goes where murmur2 of it says, as every
Kafka client does; rows without either fill one partition after the other, a batch at a time.
"""

import random
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ottla.client.partitioner import MULTIPLIER, SEED
from ottla.spark.arrow.encoding import Integers, lengths

Hashes = npt.NDArray[np.uint32]

WORD_BYTES: Final = 4
_M: Final = np.uint32(MULTIPLIER)


def murmur2(keys: Any) -> Hashes:  # noqa: ANN401
    """The 32-bit hash of every key; of null it is that of an empty one."""
    sizes = lengths(keys, len(keys)).clip(0)
    starts = np.frombuffer(keys.buffers()[1], dtype=np.int32)[keys.offset : keys.offset + len(keys)]
    stored = keys.buffers()[2]
    raw = np.frombuffer(stored, dtype=np.uint8) if stored is not None else np.empty(0, np.uint8)
    data = np.concatenate((raw, np.zeros(WORD_BYTES, dtype=np.uint8)))
    # A word may begin at any byte: a view of all of them, one byte apart.
    words = np.ndarray((len(data) - WORD_BYTES + 1,), dtype="<u4", buffer=data, strides=(1,))
    value = np.uint32(SEED) ^ sizes.astype(np.uint32)
    whole = sizes // WORD_BYTES
    for index in range(int(whole.max(initial=0))):
        rows = np.flatnonzero(whole > index)
        word = words[starts[rows] + WORD_BYTES * index] * _M
        word = (word ^ word >> np.uint32(24)) * _M
        value[rows] = (value[rows] * _M) ^ word
    rest = sizes % WORD_BYTES
    rows = np.flatnonzero(rest)
    if len(rows):
        mask = (np.uint32(1) << (rest[rows] * 8).astype(np.uint32)) - np.uint32(1)
        last = words[starts[rows] + WORD_BYTES * whole[rows]] & mask
        value[rows] = (value[rows] ^ last) * _M
    value = (value ^ value >> np.uint32(13)) * _M
    hashes: Hashes = value ^ value >> np.uint32(15)
    return hashes


def partitions_of_keys(keys: Any, partitions: int) -> Integers:  # noqa: ANN401
    """Where Kafka's clients put these keys, in a topic of that many partitions."""
    assert partitions > 0, "a topic has partitions"
    chosen: Integers = (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64) % partitions
    return chosen


class StickyRows:
    """Rows without a key: one partition gets a batch of them, then the next one does."""

    def __init__(self, batch_bytes: int, source: random.Random) -> None:
        self._batch_bytes = batch_bytes
        self._random = source
        self._turns: dict[str, int] = {}
        self._filled: dict[str, int] = {}  # Bytes of the batch that is being filled.

    def choose(self, topic: str, available: Sequence[int], sizes: Integers) -> Integers:
        """A partition for each row, given how large it is."""
        assert available, "there is a partition to choose"
        if topic not in self._turns:
            self._turns[topic] = self._random.randrange(len(available))
        filled = self._filled.get(topic, 0) + np.cumsum(sizes)
        turns = self._turns[topic] + (filled - sizes) // self._batch_bytes
        if len(sizes):
            self._turns[topic] = int(turns[-1])
            begun = (int(turns[-1]) - int(turns[0])) * self._batch_bytes
            self._filled[topic] = int(filled[-1]) - begun
        chosen: Integers = np.asarray(available, dtype=np.int64)[turns % len(available)]
        return chosen

    def next_task(self) -> None:
        """A task begins elsewhere than the last one ended: many small ones spread out too."""
        self._turns.clear()
        self._filled.clear()
