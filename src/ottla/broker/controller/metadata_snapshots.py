"""The snapshots of the metadata log on disk: found, read, written in one step, and cleaned away."""

from contextlib import suppress

from ottla.env.disk import Disk
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot import records_of
from ottla.metadata.image.snapshot_file import (
    PART_SUFFIX,
    SUFFIX,
    Snapshot,
    SnapshotId,
    read_snapshot,
    snapshot_bytes,
    snapshots_among,
)
from ottla.model.types import Millis, WallTime
from ottla.protocol.control_records import VotersRecord


class MetadataSnapshots:
    """Every call blocks; `write` and `delete` are for a worker."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        names = disk.list(directory)
        for name in names:
            if name.endswith((PART_SUFFIX, f"{SUFFIX}.deleted")):
                disk.remove(f"{directory}/{name}")  # What a crash left half done.
        self.ids = snapshots_among(names)

    @property
    def newest(self) -> SnapshotId | None:
        return self.ids[-1] if self.ids else None

    def read(self, snapshot_id: SnapshotId) -> Snapshot:
        path = self.path(snapshot_id)
        return read_snapshot(self._disk.read(path), path)

    def path(self, snapshot_id: SnapshotId) -> str:
        return f"{self._directory}/{snapshot_id.file_name}"

    def write(
        self,
        snapshot_id: SnapshotId,
        image: ClusterImage,
        voters: VotersRecord | None,
        last_timestamp: int,
        now: WallTime,
    ) -> None:
        """After a crash there is the whole snapshot or none."""
        write_snapshot(
            self._disk,
            self.path(snapshot_id),
            list(
                snapshot_bytes(
                    records_of(image),
                    image.metadata_version,
                    now=now,
                    last_timestamp=last_timestamp,
                    epoch=snapshot_id.epoch,
                    voters=voters,
                )
            ),
        )

    def read_piece(
        self, snapshot_id: SnapshotId, position: int, bytes_max: int
    ) -> tuple[bytes, int] | None:
        """A piece for a follower, and the whole size; None if there is no such snapshot."""
        if snapshot_id not in self.ids:
            return None
        file = self._disk.open(self.path(snapshot_id))
        try:
            return file.read(position, bytes_max), file.size
        finally:
            file.close()

    def write_piece(self, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
        """A piece of a snapshot that is being fetched; position 0 begins it anew."""
        file = self._disk.open(self._part(snapshot_id), create=True)
        try:
            file.truncate(position)
            file.append([data])
        finally:
            file.close()

    def finish_pieces(self, snapshot_id: SnapshotId) -> None:
        """All pieces are there: check them, and make them a snapshot, durably."""
        part = self._part(snapshot_id)
        read_snapshot(self._disk.read(part), part)
        file = self._disk.open(part)
        try:
            file.sync()
        finally:
            file.close()
        self._disk.rename(part, self.path(snapshot_id))
        self._disk.sync_directory(self._directory)

    def _part(self, snapshot_id: SnapshotId) -> str:
        return self.path(snapshot_id).removesuffix(SUFFIX) + PART_SUFFIX

    def size(self, snapshot_id: SnapshotId) -> int:
        return self._disk.size(self.path(snapshot_id))

    def expendable(
        self, log_bytes: int, *, bytes_max: int, age_ms_max: Millis, now: WallTime
    ) -> list[SnapshotId]:
        """The oldest ones that retention no longer keeps; never the newest."""
        sizes = [self.size(snapshot_id) for snapshot_id in self.ids]
        total = log_bytes + sum(sizes)
        gone: list[SnapshotId] = []
        for snapshot_id, size in zip(self.ids[:-1], sizes, strict=False):
            is_too_much = 0 <= bytes_max < total
            is_too_old = 0 <= age_ms_max < now - self._disk.modified_ms(self.path(snapshot_id))
            if not (is_too_much or is_too_old):
                break
            gone.append(snapshot_id)
            total -= size
        return gone

    def delete(self, snapshot_ids: list[SnapshotId]) -> None:
        for snapshot_id in snapshot_ids:
            self._disk.remove(self.path(snapshot_id))


def write_snapshot(disk: Disk, path: str, batches: list[bytearray]) -> None:
    part = path.removesuffix(SUFFIX) + PART_SUFFIX
    file = disk.open(part, create=True)
    try:
        file.truncate(0)
        file.append(batches)
        file.sync()
    except OSError:
        with suppress(OSError):
            disk.remove(part)  # On a full disk, half a snapshot only takes room.
        raise
    finally:
        file.close()
    disk.rename(part, path)
    disk.sync_directory(path.rpartition("/")[0])
