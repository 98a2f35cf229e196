"""Where the log of a fetching replica or consumer parts from the leader's (KIP-595).

A fetch names the epoch of the last record before its offset. The leader's log agrees with it only
if it has records of that very epoch, up to that offset: equal lengths prove nothing (KIP-279).
"""

from typing import Protocol

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Offset


class EpochEnds(Protocol):
    def epoch_end_offset(self, epoch: int, /) -> tuple[int, Offset]:
        """The greatest known epoch up to `epoch`, and where it ends; negative for neither."""


def divergence(
    leader: EpochEnds, *, fetch_offset: Offset, last_fetched_epoch: int
) -> tuple[int, Offset] | None:
    """An epoch and where it ends in the leader's log, if the logs part before `fetch_offset`.

    Raises OFFSET_OUT_OF_RANGE if the leader knows no epoch that the fetch could be compared with.
    """
    epoch, end_offset = leader.epoch_end_offset(last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return epoch, end_offset
    return None
