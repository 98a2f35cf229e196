"""The records in a leader's answer, as its follower takes them: whole, valid, not too new."""

from ottla.model.types import Offset
from ottla.protocol.messages import fetch as wire
from ottla.protocol.varint import Buffer
from ottla.records.batch import Batch, walk_batches
from ottla.storage.log import Log


def copied(part: wire.PartitionData) -> wire.PartitionData | None:
    """With records that may be appended later, when their buffer is used again; None if none."""
    if not part.records:
        return None
    part.records = bytes(part.records)
    return part


def whole_batches(
    data: Buffer, offset: Offset, *, epoch_max: int, high_watermark: Offset
) -> list[Batch]:
    """The batches that are whole and right, from `offset` on; the last one may be cut.

    Up to the first of a newer epoch than `epoch_max`: a deposed leader may send what its file
    holds since it was truncated and follows the next leader. Its high watermark and ours do not
    go with such records (KAFKA-18723).

    No checksum covers the base offset of a batch, so that its neighbours have to confirm it. Only
    compaction leaves gaps, and only below the leader's high watermark. Where a batch begins before
    its predecessor ends, one of both is wrong, and neither is taken.
    """
    batches: list[Batch] = []
    expected, after_gap_max = offset, high_watermark
    for batch in walk_batches(data):
        if batch.next_offset <= offset and not batches:
            after_gap_max = (
                offset  # Nobody asked for that batch: it may be the one that is missing.
            )
            continue
        if not batch.is_valid or batch.leader_epoch > epoch_max:
            break
        if batches and batch.base_offset < expected:
            return batches[:-1]
        if batch.base_offset > max(expected, after_gap_max):
            break
        batches.append(batch)
        expected = batch.next_offset
    return batches


def may_cut(log: Log, offset: Offset, committed: Offset) -> bool:
    """Whether a leader's batch that begins at `offset`, inside of `log`, may replace what is there.

    Not if that is committed: then the batch does not begin where it says.
    """
    if offset >= committed or log.log_start_offset == log.end_offset:
        return True
    is_served = offset >= log.log_start_offset
    return is_served and log.read(offset, 1, end_offset=log.end_offset) is None
