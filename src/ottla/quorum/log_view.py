"""What the quorum asks about the metadata log and its snapshots: questions only, no writes.

How a follower's place is compared with the leader's log, and where a follower has to cut its own,
is decided here, by offsets and epochs alone (KIP-595, KIP-630).
"""

from typing import Final, NamedTuple, Protocol

from ottla.model.types import Offset, Uuid

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final[Uuid] = bytes(15) + b"\x01"


class OffsetAndEpoch(NamedTuple):
    """A place in the log: where, and the epoch of what lies before it."""

    offset: Offset
    epoch: int


class LogView(Protocol):
    """The log of this node as it is now, synced or not."""

    @property
    def log_start_offset(self) -> Offset: ...

    @property
    def end_offset(self) -> Offset: ...

    @property
    def last_epoch(self) -> int:
        """Of the last batch, or of the snapshot that the log begins after; 0 if there is none."""

    def epoch_end(self, epoch: int) -> OffsetAndEpoch | None:
        """Where the greatest epoch not above `epoch` ends; None if the log has only later ones."""

    @property
    def oldest_snapshot(self) -> OffsetAndEpoch | None: ...

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None: ...

    def read(self, offset: Offset, bytes_max: int) -> bytes:
        """Whole batches from the one that holds `offset` on: at least one."""

    def read_snapshot(
        self, snapshot: OffsetAndEpoch, position: int, bytes_max: int
    ) -> tuple[bytes, int] | None:
        """A piece of a snapshot and the snapshot's size; None if there is no such snapshot."""


class Valid(NamedTuple):
    """The follower's log is a part of ours up to the place it asks for."""


class Diverging(NamedTuple):
    """The follower has what we have not: its log ends no later than here."""

    end: OffsetAndEpoch


class NeedsSnapshot(NamedTuple):
    """What the follower lacks is no longer in our log."""

    snapshot: OffsetAndEpoch


def compare(log: LogView, place: OffsetAndEpoch) -> Valid | Diverging | NeedsSnapshot:
    """How the place at which a follower wants to go on relates to our log."""
    if log.log_start_offset == 0 and place == (0, 0):
        return Valid()
    oldest, newest = log.oldest_snapshot, log.newest_snapshot
    start = log.log_start_offset
    if oldest is not None and newest is not None and start > 0:
        is_gone = place.offset < start or place.epoch < oldest.epoch
        is_other = place.offset == start and place.epoch != oldest.epoch
        if is_gone or is_other:
            return NeedsSnapshot(newest)
    if oldest is not None and start > 0 and place == oldest:
        return Valid()
    end = end_of(log, place.epoch)
    if end.epoch != place.epoch or end.offset < place.offset:
        return Diverging(end)
    return Valid()


def truncation_point(log: LogView, leader_end: OffsetAndEpoch) -> Offset:
    """Where our log has to end, once the leader said where its own ends for our last epoch."""
    ours = end_of(log, leader_end.epoch)
    if ours.epoch == leader_end.epoch:
        return min(ours.offset, leader_end.offset)
    return ours.offset


def end_of(log: LogView, epoch: int) -> OffsetAndEpoch:
    """Where the greatest epoch not above `epoch` ends in our log, snapshot included."""
    end = log.epoch_end(epoch)
    if end is not None:
        return end
    oldest = log.oldest_snapshot
    snapshot_epoch = oldest.epoch if oldest is not None and log.log_start_offset > 0 else 0
    return OffsetAndEpoch(log.log_start_offset, snapshot_epoch)


def end(log: LogView) -> OffsetAndEpoch:
    """Where our log ends: what a candidate shows, and where a follower goes on."""
    return OffsetAndEpoch(log.end_offset, log.last_epoch)


def is_up_to_date(log: LogView, candidate: OffsetAndEpoch) -> bool:
    """Whether a candidate's log has at least what ours has (Raft, section 5.4.1)."""
    return (candidate.epoch, candidate.offset) >= (log.last_epoch, log.end_offset)
