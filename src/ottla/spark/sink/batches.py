"""A batch on its way, and the two changes that may become necessary after it was sealed.

A topic may take only smaller batches: then a batch is cut in halves, whose numbers are those that
it had. A broker may have lost what it knew of the producer: then it gets a new epoch and new
numbers.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Final

from ottla.model.types import TopicPartition
from ottla.records.batch import SEQUENCE_MAX
from ottla.records.batch import Batch as View
from ottla.records.record import Record, build_batch, read_records
from ottla.spark.arrow.encoding import Producer

IDENTITY: Final = Struct(">qhi")  # Producer id, epoch and base sequence.
IDENTITY_POSITION: Final = 43
UNFOLDED_BYTES_MAX: Final = 1 << 31


@dataclass(slots=True, eq=False)
class Batch:
    place: TopicPartition
    data: bytearray
    count: int
    base_sequence: int
    unanswered: int = 0  # Attempts that may have been written, for all that was answered.


def halves(batch: Batch, codec: int) -> list[Batch]:
    """Two batches with the same records, the second numbered on from the first."""
    assert batch.count > 1, "one record cannot be cut"
    view = View(batch.data)
    records = list(read_records(view, UNFOLDED_BYTES_MAX))
    middle = len(records) // 2
    parts = (records[:middle], records[middle:])
    sequences = (batch.base_sequence, (batch.base_sequence + middle) & SEQUENCE_MAX)
    return [
        Batch(
            batch.place,
            _rebuilt(part, codec, Producer(view.producer_id, view.producer_epoch, sequence)),
            len(part),
            sequence,
            batch.unanswered,
        )
        for part, sequence in zip(parts, sequences, strict=True)
    ]


def renumber(batch: Batch, producer: Producer) -> None:
    IDENTITY.pack_into(batch.data, IDENTITY_POSITION, *producer)
    View(batch.data).seal()
    batch.base_sequence = producer.base_sequence


def _rebuilt(records: list[Record], codec: int, producer: Producer) -> bytearray:
    first = records[0].offset
    return build_batch(
        [record._replace(offset=record.offset - first) for record in records],
        codec=codec,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=producer.base_sequence,
    )
