"""Which producer id, epoch and sequence the next batch of a partition bears. Pure.

A tail is one of several processes that may write to a partition: the one before it may be paused,
and go on when its replication slot has another owner. The broker is the judge between them. All of
them number the records of a partition alike, so that for each sequence number it takes one batch:

    stream    A tail continues the numbers of the last batch. The n-th record is the same change in
              every tail, since positions depend on nothing but the slot's stream. A batch that has
              been overtaken is dropped as a duplicate or refused as out of sequence.
    snapshot  Two snapshots differ. Each begins with sequence 0 in the next epoch; once it has
              written to a partition, the broker refuses batches of the epochs before.

An empty partition has no last batch. Its producer id follows from its name and its end offset, so
that all tails choose the same one. Brokers allocate producer ids upwards from 0 and check none that
a producer without transactions names; those chosen here are above 2^62.

The broker forgets a producer that has not written for producer.id.expiration.ms (a day): a tail
that is paused for longer, in the middle of a write, is not refused.
"""

from hashlib import blake2b
from typing import Final

from ottla.client.idempotence import EPOCH_MAX, Identity, Numbering
from ottla.client.unpacking import Origin
from ottla.model.types import Offset, TopicPartition
from ottla.records.batch import SEQUENCE_MAX

PRODUCER_ID_MIN: Final = 1 << 62


def numbering_after(last: Origin | None, place: TopicPartition, end_offset: Offset) -> Numbering:
    """The numbers after the last batch of a partition that ends at `end_offset`."""
    if last is None or last.producer_id < 0:
        return _first(place, end_offset)
    identity = Identity(last.producer_id, last.producer_epoch)
    return Numbering(identity, (last.last_sequence + 1) & SEQUENCE_MAX)


def next_epoch(numbering: Numbering, place: TopicPartition, end_offset: Offset) -> Numbering:
    producer_id, epoch = numbering.identity
    if epoch == EPOCH_MAX:
        return _first(place, end_offset)
    return Numbering(Identity(producer_id, epoch + 1))


def _first(place: TopicPartition, end_offset: Offset) -> Numbering:
    text = f"{place.topic}/{place.partition}/{end_offset}"
    digest = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
    return Numbering(Identity(PRODUCER_ID_MIN | digest % PRODUCER_ID_MIN, 0))
