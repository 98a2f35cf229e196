"""A metadata snapshot file: its name and its bytes.

`<offset>-<epoch>.checkpoint` holds all records below that offset, the last of them of that epoch: a
header, the records, a footer. With kraft.version 1 the header's batch also names the voters.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.metadata.image.batches import (
    batches_in,
    control_batch,
    data_batches,
    encoded,
    read_controls,
    read_metadata,
)
from ottla.model.errors import Damaged
from ottla.model.types import Offset, WallTime
from ottla.protocol.control_records import (
    Control,
    KRaftVersionRecord,
    QuorumControl,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ottla.protocol.metadata_records import MetadataRecord

SUFFIX: Final = ".checkpoint"
PART_SUFFIX: Final = ".checkpoint.part"  # Incomplete; ignored after a crash.
BOOTSTRAP_NAME: Final = "bootstrap.checkpoint"

_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(NamedTuple):
    end_offset: Offset  # The first offset that is not in it.
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


@dataclass(slots=True)
class Snapshot:
    records: list[MetadataRecord] = field(default_factory=list)
    kraft_version: int = 0
    voters: VotersRecord | None = None
    last_timestamp: int = 0


def snapshots_among(file_names: Iterable[str]) -> list[SnapshotId]:
    """The snapshots of a directory, oldest first."""
    found = (_NAME.fullmatch(name) for name in file_names)
    return sorted(SnapshotId(int(match[1]), int(match[2])) for match in found if match)


def snapshot_bytes(
    records: Iterable[MetadataRecord],
    metadata_version: int,
    *,
    now: WallTime,
    last_timestamp: int,
    epoch: int,
    voters: VotersRecord | None = None,
) -> Iterator[bytearray]:
    """The file's batches. Pass `voters` if kraft.version is 1."""
    header: list[QuorumControl] = [
        SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp)
    ]
    if voters is not None:
        header += [KRaftVersionRecord(kraft_version=1), voters]
    offset = len(header)
    yield control_batch(header, 0, epoch, now)
    values = encoded(records, metadata_version)
    yield from data_batches([values], offset, epoch, now)
    yield control_batch([SnapshotFooterRecord()], offset + len(values), epoch, now)


def read_snapshot(data: bytes, path: str) -> Snapshot:
    """The contents of a snapshot; Damaged unless it is complete."""
    snapshot = Snapshot()
    is_begun = is_ended = False
    for position, batch in batches_in(data, path):
        if is_ended:
            raise Damaged(path, position, "something after the footer")
        if not batch.is_control:
            if not is_begun:
                raise Damaged(path, position, "records without a header")
            snapshot.records += [record for _, record in read_metadata(batch, path, position)]
            continue
        controls = read_controls(batch, path, position)
        if not is_begun and not isinstance(controls[0], SnapshotHeaderRecord):
            raise Damaged(path, position, "a snapshot has to begin with its header")
        is_begun = True
        is_ended = _take(snapshot, controls)
    if not is_ended:
        raise Damaged(path, len(data), "the footer is missing")
    return snapshot


def _take(snapshot: Snapshot, controls: Sequence[Control]) -> bool:
    """Store the control records; True if the footer is among them."""
    for control in controls:
        match control:
            case SnapshotHeaderRecord():
                snapshot.last_timestamp = control.last_contained_log_timestamp
            case KRaftVersionRecord():
                snapshot.kraft_version = control.kraft_version
            case VotersRecord():
                snapshot.voters = control
            case SnapshotFooterRecord():
                return True
    return False
