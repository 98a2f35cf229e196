"""Which partition of `__consumer_offsets` keeps a group: Kafka's hash of its id."""

from functools import lru_cache

OFFSETS_TOPIC = "__consumer_offsets"
CACHED_ID_CHARACTERS_MAX = 255  # A client may send 32 KiB, thousands of times.


def java_hash(text: str) -> int:
    """`String.hashCode` of Java: over UTF-16 units, in 32 bits with a sign."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(data), 2):
        unit = (data[position] << 8) | data[position + 1]
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def partition_of(group_id: str, partitions: int) -> int:
    if len(group_id) > CACHED_ID_CHARACTERS_MAX:
        return _partition_of(group_id, partitions)
    return _cached_partition_of(group_id, partitions)


def _partition_of(group_id: str, partitions: int) -> int:
    value = java_hash(group_id)
    return (0 if value == -(1 << 31) else abs(value)) % partitions


_cached_partition_of = lru_cache(maxsize=4096)(_partition_of)  # Every heartbeat asks.
