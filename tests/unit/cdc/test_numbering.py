"""The numbers of the next batch: the same in every tail that sees the same partition."""

from ottla.cdc.numbering import PRODUCER_ID_MIN, next_epoch, numbering_after
from ottla.client.idempotence import EPOCH_MAX, Identity, Numbering
from ottla.client.unpacking import Origin
from ottla.model.types import TopicPartition
from ottla.records.batch import SEQUENCE_MAX

PLACE = TopicPartition("shop.public.t", 2)


def test_numbers_continue_those_of_the_last_batch() -> None:
    assert numbering_after(Origin(7, 3, 41), PLACE, 90) == Numbering(Identity(7, 3), 42)
    assert numbering_after(Origin(7, 3, SEQUENCE_MAX), PLACE, 90) == Numbering(Identity(7, 3), 0)


def test_tails_of_an_empty_partition_choose_the_same_id() -> None:
    chosen = numbering_after(None, PLACE, 0)
    assert chosen == numbering_after(None, PLACE, 0)
    assert chosen == numbering_after(Origin(-1, -1, -1), PLACE, 0)
    (producer_id, epoch), sequence = chosen
    assert PRODUCER_ID_MIN <= producer_id < 2**63
    assert (epoch, sequence) == (0, 0)
    # Where all records were removed, the broker may still count on from the first id.
    others = [
        numbering_after(None, PLACE, 5),
        numbering_after(None, PLACE._replace(partition=1), 0),
    ]
    assert len({producer_id, *(other.identity.producer_id for other in others)}) == 3


def test_snapshot_begins_the_next_epoch_at_sequence_0() -> None:
    numbering = Numbering(Identity(7, 3), 42)
    assert next_epoch(numbering, PLACE, 90) == Numbering(Identity(7, 4), 0)
    last = Numbering(Identity(7, EPOCH_MAX), 42)
    assert next_epoch(last, PLACE, 90) == numbering_after(None, PLACE, 90)
