"""Adds the voters and the kraft.version of snapshots and control batches to the `VoterHistory`."""

from ottla.broker.controller.metadata_checks import check_kraft_version
from ottla.broker.controller.metadata_log_settings import MetadataLogSettings
from ottla.metadata.image.batches import read_controls
from ottla.metadata.image.features import KRAFT_VERSION_MAX
from ottla.metadata.image.snapshot_file import Snapshot
from ottla.model.types import Offset
from ottla.protocol.control_records import KRaftVersionRecord, VotersRecord
from ottla.quorum.voter_history import VoterHistory
from ottla.quorum.voters import Voters
from ottla.records.batch import Batch


class VoterRecords:
    """Every method raises FormatRefused for a kraft.version that this Ottla does not know."""

    def __init__(self, settings: MetadataLogSettings) -> None:
        static = settings.static_voters
        self.history = VoterHistory(static or Voters.of(()), 0 if static else KRAFT_VERSION_MAX)
        self._log_dir = settings.log_dir

    def snapshot_read(self, end_offset: Offset, snapshot: Snapshot) -> None:
        check_kraft_version(snapshot.kraft_version, self._log_dir)
        voters = Voters.from_record(snapshot.voters) if snapshot.voters is not None else None
        # Snapshot 0-0 was written by formatting: its voters are not in the log yet.
        self.history.snapshot_loaded(end_offset, voters, snapshot.kraft_version)

    def batch_read(self, batch: Batch, path: str, position: int) -> None:
        if not batch.is_control:
            return
        for offset, control in enumerate(read_controls(batch, path, position), batch.base_offset):
            if isinstance(control, KRaftVersionRecord):
                check_kraft_version(control.kraft_version, self._log_dir)
                self.history.kraft_version_read(offset, control.kraft_version)
            elif isinstance(control, VotersRecord):
                self.history.voters_read(offset, Voters.from_record(control))
