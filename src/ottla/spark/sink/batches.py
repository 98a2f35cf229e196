"""A batch on its way to a partition, and its halves, if the topic takes only smaller ones."""

from dataclasses import dataclass
from typing import Final

from ottla.client.idempotence import OutgoingBatch
from ottla.model.types import TopicPartition
from ottla.records.batch import Batch as View
from ottla.records.record import build_batch, read_records

UNFOLDED_BYTES_MAX: Final = 1 << 31


@dataclass(slots=True, eq=False, kw_only=True)
class Batch(OutgoingBatch):
    place: TopicPartition


def halves(batch: Batch, codec: int) -> tuple[Batch, Batch]:
    """Two batches with the same records, which have no numbers yet."""
    assert batch.count > 1, "one record cannot be split"
    records = list(read_records(View(batch.data), UNFOLDED_BYTES_MAX))
    middle = len(records) // 2
    first, second = (
        Batch(
            place=batch.place,
            count=len(part),
            data=build_batch(
                [record._replace(offset=record.offset - part[0].offset) for record in part],
                codec=codec,
            ),
        )
        for part in (records[:middle], records[middle:])
    )
    return first, second
