"""The cluster's image as far as the metadata log is committed, and how it grows with that.

What this node wrote itself is applied as it was decided; what it fetched is read from the log.
"""

from collections.abc import Sequence

from ottla.broker.controller.active_controller import Written
from ottla.broker.controller.metadata_log import MetadataLog
from ottla.broker.controller.snapshot_writer import SnapshotWriter
from ottla.env.environment import Environment
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.image import ClusterImage, InconsistentRecord
from ottla.metadata.image.replacement import delta_between
from ottla.model.errors import Damaged
from ottla.model.types import Offset


class CommittedImage:
    def __init__(self, env: Environment, cluster_id: str, log: MetadataLog) -> None:
        self.image = ClusterImage(cluster_id)
        self.snapshots = SnapshotWriter(env, log)
        self._log = log

    def load(self) -> None:
        """The newest snapshot, which holds only what is committed; then the log is opened."""
        try:
            for offset, record in self._log.load_snapshot():
                self.image.apply(offset, record)
        except InconsistentRecord as error:
            raise self._damaged(error) from error
        self._log.open()
        newest = self._log.newest_snapshot
        self.image.offset = (newest.offset if newest is not None else 0) - 1

    def advance(self, end: Offset, own: Sequence[Written] = ()) -> ImageDelta:
        """Everything below `end` is committed: fold it in, and say what that changed."""
        offset = self.image.offset + 1
        try:
            while offset < end:
                offset = self._apply_from(offset, end, own)
        except InconsistentRecord as error:
            raise self._damaged(error) from error
        return self.image.take_delta()

    def replace(self) -> ImageDelta:
        """The log begins anew after a snapshot of the leader's: so does the image."""
        before, self.image = self.image, ClusterImage(self.image.cluster_id)
        for offset, record in self._log.load_snapshot():
            self.image.apply(offset, record)
        self.image.offset = self._log.end_offset - 1
        self.image.take_delta()
        return delta_between(before, self.image)

    def _apply_from(self, offset: Offset, end: Offset, own: Sequence[Written]) -> Offset:
        """Apply the next stretch, as we wrote it or from the log; returns where it ends."""
        written = next((w for w in own if w.end_offset > offset), None)
        is_next = written is not None and written.base_offset == offset
        if written is not None and is_next and written.end_offset <= end:
            for number, record in enumerate(written.records, offset):
                self.image.apply(number, record)
            end = written.end_offset
        else:
            if written is not None and written.base_offset > offset:
                end = min(end, written.base_offset)
            for number, record in self._log.records(offset, end):
                self.image.apply(number, record)
        self.image.offset = end - 1
        return end

    def _damaged(self, error: InconsistentRecord) -> Damaged:
        return Damaged(self._log.directory, 0, f"after offset {self.image.offset} {error}")
