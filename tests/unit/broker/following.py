"""Batches as a leader sends them to its followers."""

from ottla.records.record import Record, build_batch


def batch(base_offset: int, count: int = 1, epoch: int = 0) -> bytes:
    records = [Record(base_offset + i, 0, None, b"v") for i in range(count)]
    return bytes(build_batch(records, base_offset=base_offset, leader_epoch=epoch))
