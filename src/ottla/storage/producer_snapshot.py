"""Kafka's `.snapshot` files: a partition's producers at one offset, with a CRC.

One is taken where a segment begins and one at a clean end, so that opening a log replays at most
the batches since the last. A snapshot that does not check is dropped and an older one is used.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from ottla.env.disk import Disk
from ottla.model.types import Offset
from ottla.records.checksum import crc32c
from ottla.storage.files import PRODUCER_SNAPSHOT, file_name, parse_file_name
from ottla.storage.producer_state import Appended, Producer

_HEADER: Final = Struct(">hIi")  # Version, CRC, number of entries.
_ENTRY: Final = Struct(">qhiqiqiq")
_VERSION: Final = 1
_CRC_START: Final = 6


class BadSnapshot(ValueError):
    """A producer snapshot that was torn or changed."""


def encode_snapshot(producers: dict[int, Producer]) -> bytes:
    parts = [bytes(_HEADER.size)]
    for producer_id, producer in producers.items():
        last = producer.batches[-1] if producer.batches else None
        parts.append(
            _ENTRY.pack(
                producer_id,
                producer.epoch,
                producer.last_sequence,
                last.last_offset if last else -1,
                last.offset_delta if last else 0,
                producer.last_timestamp,
                producer.coordinator_epoch,
                producer.transaction_start,
            )
        )
    data = bytearray(b"".join(parts))
    _HEADER.pack_into(data, 0, _VERSION, 0, len(producers))
    _HEADER.pack_into(data, 0, _VERSION, crc32c(memoryview(data)[_CRC_START:]), len(producers))
    return bytes(data)


def decode_snapshot(data: bytes) -> dict[int, Producer]:
    if len(data) < _HEADER.size:
        raise BadSnapshot(f"{len(data)} bytes are too few")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise BadSnapshot(f"version {version} is not known")
    if len(data) != _HEADER.size + count * _ENTRY.size:
        raise BadSnapshot(f"{count} entries do not fill {len(data)} bytes")
    if crc != crc32c(memoryview(data)[_CRC_START:]):
        raise BadSnapshot("its checksum does not match")
    producers: dict[int, Producer] = {}
    for entry in _ENTRY.iter_unpack(memoryview(data)[_HEADER.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, start = entry
        batches = (Appended(sequence, offset, delta, timestamp),) if offset >= 0 else ()
        producers[producer_id] = Producer(epoch, coordinator_epoch, timestamp, start, batches)
    return producers


def snapshots_in(names: Iterable[str]) -> list[Offset]:
    """The offsets of all snapshots among the names of a directory, in order."""
    parsed = [parse_file_name(name) for name in names if name.endswith(PRODUCER_SNAPSHOT)]
    return sorted(name[0] for name in parsed if name is not None)


def write_snapshot(
    disk: Disk, directory: str, offset: Offset, producers: dict[int, Producer]
) -> str:
    """Not synced, as Kafka leaves it: it is synced before the recovery point passes it."""
    path = f"{directory}/{file_name(offset, PRODUCER_SNAPSHOT)}"
    file = disk.open(path, create=True)
    try:
        if file.size:
            file.truncate(0)
        file.append([encode_snapshot(producers)])
    finally:
        file.close()
    return path


def read_newest_snapshot(
    disk: Disk, directory: str, offsets: Sequence[Offset]
) -> tuple[Offset, dict[int, Producer]] | None:
    """The newest of these snapshots that is whole; broken ones on the way are removed."""
    for offset in reversed(offsets):
        path = f"{directory}/{file_name(offset, PRODUCER_SNAPSHOT)}"
        try:
            return offset, decode_snapshot(disk.read(path))
        except BadSnapshot:
            disk.remove(path)
    return None
