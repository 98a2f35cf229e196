"""Record batches as a fetch brings them, and what they hold."""

from collections.abc import Sequence

from ottla.records.batch import HEADER_BYTES, Batch
from ottla.records.record import Record, build_batch
from ottla.spark.arrow.batch_scan import Placed

START_MS = 1_700_000_000_000


def records(first: int, count: int, size: int = 20, headers: tuple = ()) -> list[Record]:
    return [
        Record(
            offset,
            START_MS + offset,
            None if offset % 5 == 0 else f"key {offset}".encode(),
            None if offset % 7 == 0 else bytes([offset % 256]) * (size + offset % 11),
            headers if offset % 2 else (),
        )
        for offset in range(first, first + count)
    ]


def placed_in(data: bytes | bytearray) -> list[Placed]:
    found = []
    position = 0
    while position < len(data):
        batch = Batch.parse(data, position)
        found.append(Placed(position + HEADER_BYTES, batch))
        position += batch.size
    return found


def joined(batches: Sequence[Sequence[Record]], codecs: Sequence[int] = (0,)) -> bytearray:
    data = bytearray()
    for number, batch in enumerate(batches):
        data += build_batch(batch, codec=codecs[number % len(codecs)])
    return data
