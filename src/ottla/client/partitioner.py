"""Which partition a record goes to: Kafka's choice, so that all clients agree about a key.

A key's partition is murmur2 of its bytes; a record without a key sticks to one partition until a
batch of it was sent (KIP-480), which makes fewer and larger batches than turn by turn does.
"""

import random
from collections.abc import Sequence
from struct import unpack_from

MASK = 0xFFFFFFFF
SEED, MULTIPLIER = 0x9747B28C, 0x5BD1E995


def murmur2(data: bytes) -> int:
    """The 32-bit hash (unsigned) that Kafka's Java client uses."""
    whole = len(data) // 4
    value = SEED ^ len(data)
    for word in unpack_from(f"<{whole}I", data):
        word = word * MULTIPLIER & MASK
        word = (word ^ word >> 24) * MULTIPLIER & MASK
        value = (value * MULTIPLIER & MASK) ^ word
    if rest := data[whole * 4 :]:
        value = (value ^ int.from_bytes(rest, "little")) * MULTIPLIER & MASK
    value = (value ^ value >> 13) * MULTIPLIER & MASK
    return value ^ value >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    assert partitions > 0, "a topic has partitions"
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitions:
    """The partition that records without a key go to, per topic, until their batch is sent."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._chosen: dict[str, int] = {}

    def choose(self, topic: str, available: Sequence[int]) -> int:
        assert available, "there is a partition to choose"
        chosen = self._chosen.get(topic)
        if chosen is None or chosen not in available:
            chosen = self._chosen[topic] = self._random.choice(available)
        return chosen

    def batch_sent(self, topic: str, partition: int) -> None:
        """The next record may go elsewhere."""
        if self._chosen.get(topic) == partition:
            del self._chosen[topic]
