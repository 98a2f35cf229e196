"""Point of divergence between the log of a fetching replica or consumer and the leader's (KIP-595).

A fetch names the epoch of the last record before its offset. The leader's log agrees only if it has
records of that same epoch up to that offset: equal lengths prove nothing (KIP-279).
"""

from typing import Protocol

from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Offset


class EpochEnds(Protocol):
    def epoch_end_offset(self, epoch: int, /) -> tuple[int, Offset]:
        """The greatest known epoch up to `epoch`, and its end offset; negative for neither."""


def divergence(
    leader: EpochEnds, *, fetch_offset: Offset, last_fetched_epoch: int
) -> tuple[int, Offset] | None:
    """The diverging epoch and its end in the leader's log; None if the logs agree up to
    `fetch_offset`.

    Raises OFFSET_OUT_OF_RANGE if the leader knows no epoch to compare the fetch with.
    """
    epoch, end_offset = leader.epoch_end_offset(last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise Refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < last_fetched_epoch or end_offset < fetch_offset:
        return epoch, end_offset
    return None
