"""Reading sealed segments again, to find what a disk has changed since they were written."""

from ottla.env.disk import File
from ottla.model.errors import Damaged
from ottla.storage.segment import scan

BATCHES_MAX = 500  # A step of them takes a millisecond, in which nobody else computes.


def check_batches(file: File, position: int, end: int, offsets: range, bytes_max: int) -> int:
    """For a worker: check about `bytes_max` bytes, or a few batches; returns where to go on.

    Damaged at the first that is not what somebody wrote there. `end` is where a batch ends, and
    `offsets` are those that may lie in the file: the checksum does not cover a batch's own.
    """
    checked, offset, epoch = position, offsets.start, -1
    for count, (start, batch) in enumerate(scan(file, position, end), 1):
        if not (
            batch.is_valid
            and offset <= batch.base_offset < batch.next_offset <= offsets.stop
            and batch.leader_epoch >= epoch
        ):
            raise Damaged(file.path, start, "a record batch that nobody wrote so")
        checked, offset, epoch = start + batch.size, batch.next_offset, batch.leader_epoch
        if checked - position >= bytes_max or count == BATCHES_MAX:
            return checked
    if checked < end:
        raise Damaged(file.path, checked, "no valid record batch in a sealed segment")
    return end
