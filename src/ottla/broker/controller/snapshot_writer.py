"""Writes snapshots of the committed image, and deletes snapshots and segments beyond retention.

The newest snapshot is never deleted, and the log starts at the end offset of the oldest one.
"""

from ottla.broker.controller.metadata_log import MetadataLog
from ottla.env.environment import Environment
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot_file import SnapshotId
from ottla.model.types import WallTime
from ottla.storage.deletion import remove_paths
from ottla.storage.retention import delete_old_segments


class SnapshotWriter:
    def __init__(self, env: Environment, log: MetadataLog) -> None:
        self._env = env
        self._log = log
        self._snapshots = log.snapshots
        self._written_at = env.clock.monotonic()
        self._growth_bytes = 0  # `log.growth_bytes` when the last snapshot was begun.

    @property
    def is_due(self) -> bool:
        """True if the log has grown enough since the last snapshot, or at all and it is old."""
        settings = self._log.settings
        growth_bytes = self._log.growth_bytes - self._growth_bytes
        if growth_bytes >= settings.snapshot_after_bytes:
            return True
        age_ms = self._env.clock.monotonic() - self._written_at
        return bool(growth_bytes) and 0 < settings.snapshot_after_ms <= age_ms

    async def write(self, image: ClusterImage) -> None:
        """Write a snapshot of `image`, which is frozen and not inside a transaction."""
        snapshot_id = SnapshotId(image.offset + 1, self._log.epoch_of(image.offset))
        self._growth_bytes = self._log.growth_bytes
        self._written_at = self._env.clock.monotonic()
        if self._is_covered(snapshot_id):
            return
        history = self._log.history
        end = snapshot_id.end_offset
        voters = history.voters_at(end).to_record() if history.kraft_version else None
        now = self._env.clock.wall()
        await self._env.workers.run(
            self._snapshots.write, snapshot_id, image, voters, self._log.last_timestamp, now
        )
        if not self._is_covered(snapshot_id):
            self._snapshots.ids.append(snapshot_id)
            await self._delete_old(now)
        elif self._snapshots.newest != snapshot_id:
            # A newer one was installed while this one was written.
            await self._env.workers.run(self._snapshots.delete, [snapshot_id])
        deleted = self._log.storage.files.deletion.take_due(now)
        await self._env.workers.run(remove_paths, self._env.disk, deleted)

    def _is_covered(self, snapshot_id: SnapshotId) -> bool:
        newest = self._snapshots.newest
        return newest is not None and newest.end_offset >= snapshot_id.end_offset

    async def _delete_old(self, now: WallTime) -> None:
        """Delete old snapshots, and the segments below the oldest snapshot that is left."""
        settings = self._log.settings
        gone = self._snapshots.expendable(
            self._log.storage.size_bytes,
            bytes_max=settings.retention_bytes,
            age_ms_max=settings.retention_ms,
            now=now,
        )
        if not gone:
            return
        # At once: while a worker syncs, another snapshot may be written, or installed.
        kept = self._snapshots.ids = self._snapshots.ids[len(gone) :]
        # The log first: it may start only at the end offset of a snapshot.
        self._log.storage.advance_log_start(kept[0].end_offset)
        for step in delete_old_segments(self._log.storage, now, kept[0].end_offset):
            await self._env.workers.run(step.sync)
        await self._env.workers.run(self._snapshots.delete, gone)
