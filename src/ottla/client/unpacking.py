"""From the bytes of a fetch to messages: whole batches, checked, committed ones only if asked so.

A broker sends batches as they lie on its disk: the first may begin below the offset asked for, the
last may be cut, and the records of aborted transactions are among them with a list of their
producers (KIP-98). All of that ends here.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from ottla.client.errors import ClientError
from ottla.client.message import Message
from ottla.env.disk import Buffer
from ottla.model.types import Offset, TopicPartition
from ottla.records.batch import MAGIC, Batch, walk_batches
from ottla.records.record import BadRecords, read_records

DECOMPRESSED_BYTES_MAX = 256 * 1024 * 1024
CONTROL_KEY = Struct(">hh")  # Version and type of a control record.
ABORT = 0


class CorruptBatch(ClientError):
    """A broker sent a batch that is not what its producer wrote."""


class Origin(NamedTuple):
    """Which producer wrote a batch, and its place in the sequence of that producer."""

    producer_id: int
    producer_epoch: int
    last_sequence: int


class Transactions:
    """Which transactional batches of one fetch were aborted."""

    def __init__(self, aborted: Iterable[tuple[int, Offset]] = ()) -> None:
        """`aborted`: producer ids and the first offset of each aborted transaction."""
        self._to_come = sorted(aborted, key=lambda item: item[1], reverse=True)
        self._aborted: set[int] = set()

    def is_aborted(self, batch: Batch) -> bool:
        """Asked for each batch in the order of the log."""
        while self._to_come and self._to_come[-1][1] <= batch.last_offset:
            self._aborted.add(self._to_come.pop()[0])
        if batch.is_control and _is_abort(batch):
            self._aborted.discard(batch.producer_id)
        return batch.is_transactional and batch.producer_id in self._aborted


def unpack(
    topic_partition: TopicPartition,
    data: Buffer | None,
    *,
    offset: Offset,
    transactions: Transactions | None = None,
    origins: dict[TopicPartition, Origin] | None = None,
) -> tuple[list[Message], Offset]:
    """The messages from `offset` on, and the offset that follows all that was looked at.

    `origins` takes the origin of the last batch, which compaction may have left without records.
    """
    last: Batch | None = None
    messages: list[Message] = []
    for batch in walk_batches(data or b""):
        if batch.magic != MAGIC:
            raise CorruptBatch(f"a batch of format {batch.magic} came; only format 2 is read")
        if batch.next_offset <= offset:
            continue
        if not batch.is_valid:
            raise CorruptBatch(
                f"{topic_partition} holds a batch at offset {batch.base_offset}"
                " whose checksum does not match"
            )
        is_hidden = transactions is not None and transactions.is_aborted(batch)
        if not (is_hidden or batch.is_control):
            try:
                messages += _messages_of(topic_partition, batch, offset)
            except BadRecords as failure:
                raise CorruptBatch(
                    f"{topic_partition} holds a batch at offset {batch.base_offset}"
                    f" that cannot be read: {failure}"
                ) from failure
        offset, last = batch.next_offset, batch
    if origins is not None and last is not None:
        origins[topic_partition] = Origin(last.producer_id, last.producer_epoch, last.last_sequence)
    return messages, offset


def _messages_of(
    topic_partition: TopicPartition, batch: Batch, offset: Offset
) -> Iterator[Message]:
    topic, partition = topic_partition
    is_append_time = batch.is_log_append_time
    for record in read_records(batch, DECOMPRESSED_BYTES_MAX):
        if record.offset < offset:
            continue
        yield Message(
            topic,
            partition,
            record.offset,
            record.timestamp,
            is_append_time,
            record.key,
            record.value,
            record.headers,
        )


def _is_abort(batch: Batch) -> bool:
    for record in read_records(batch, DECOMPRESSED_BYTES_MAX):
        key = record.key or b""
        return len(key) >= CONTROL_KEY.size and CONTROL_KEY.unpack_from(key)[1] == ABORT
    return False
