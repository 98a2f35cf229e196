"""What the quorum wants done. Whoever drives it does so in order, each before the next begins.

So a state or a record is durable before the request or the answer that follows from it is sent.
"""

from dataclasses import dataclass
from typing import Any

from ottla.model.machine import Ticket
from ottla.model.types import NodeId, Offset
from ottla.protocol.control_records import QuorumControl
from ottla.quorum.election_state import ElectionState
from ottla.quorum.log_view import OffsetAndEpoch
from ottla.quorum.voters import Address


@dataclass(frozen=True, slots=True)
class PersistState:
    """Write `quorum-state` and sync it, before anything that follows."""

    state: ElectionState


@dataclass(frozen=True, slots=True)
class BeginEpoch:
    """This node leads: append these control records, in one batch, as the epoch's first.

    Then `appended`, and `synced` once they are durable.
    """

    epoch: int
    records: tuple[QuorumControl, ...]


@dataclass(frozen=True, slots=True)
class EndEpoch:
    """This node does not lead any more: what is not committed yet may never be."""

    epoch: int


@dataclass(frozen=True, slots=True)
class AppendControl:
    """The leader writes control records of its own; then `appended` and `synced`."""

    epoch: int
    records: tuple[QuorumControl, ...]


@dataclass(frozen=True, slots=True)
class AppendFetched:
    """The leader's next batches: append them as they are, sync, then `appended`."""

    data: bytes


@dataclass(frozen=True, slots=True)
class TruncateTo:
    """Cut everything at and past this offset away, voters records included; then `appended`."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class WriteSnapshotPiece:
    """A piece of a snapshot that is being fetched; position 0 begins it anew."""

    snapshot: OffsetAndEpoch
    position: int
    data: bytes


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """The snapshot is whole: make it durable, begin the log anew after it, load it.

    Then `snapshot_installed`.
    """

    snapshot: OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class Committed:
    """Everything below is committed, for ever."""

    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class Send:
    """Ask another node; `answered` or `failed` has to follow, once."""

    to: NodeId  # Negative for a bootstrap server, whose id nobody knows yet.
    address: Address
    request: Any


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer whoever asked with this ticket."""

    ticket: Ticket
    response: Any


Effect = (
    PersistState
    | BeginEpoch
    | EndEpoch
    | AppendControl
    | AppendFetched
    | TruncateTo
    | WriteSnapshotPiece
    | InstallSnapshot
    | Committed
    | Send
    | Reply
)
