from random import Random

import pytest

from ottla.broker.controller.metadata_snapshots import MetadataSnapshots, write_snapshot
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot_file import SnapshotId
from ottla.model.types import WallTime
from ottla.protocol.metadata_records import FeatureLevelRecord
from ottla.simulation.world.disk import Crashed, SimulatedDisk

NOW = WallTime(1_000_000)
DAY_MS = 86_400_000


def empty_disk() -> SimulatedDisk:
    disk = SimulatedDisk(Random(0))
    disk.make_directory("/log")
    disk.now_ms = NOW
    return disk


def image() -> ClusterImage:
    made = ClusterImage("c")
    made.apply(0, FeatureLevelRecord("metadata.version", 30))
    return made


def with_snapshots(*ends: int) -> MetadataSnapshots:
    snapshots = MetadataSnapshots(empty_disk(), "/log")
    for end in ends:
        snapshot_id = SnapshotId(end, 1)
        snapshots.write(snapshot_id, image(), None, 5, NOW)
        snapshots.ids.append(snapshot_id)
    return snapshots


def test_the_newest_snapshot_is_the_one_with_the_highest_offset() -> None:
    snapshots = with_snapshots(10, 20)
    assert snapshots.newest == SnapshotId(20, 1)
    assert snapshots.read(SnapshotId(20, 1)).records == [FeatureLevelRecord("metadata.version", 30)]


def test_an_empty_directory_has_none() -> None:
    assert with_snapshots().newest is None


def test_what_a_crash_left_half_written_is_removed() -> None:
    disk = empty_disk()
    for name in ("5-1.checkpoint.part", f"{5:020d}-{1:010d}.checkpoint.deleted", "other"):
        disk.open(f"/log/{name}", create=True)
    assert MetadataSnapshots(disk, "/log").ids == []
    assert disk.list("/log") == ["other"]


def test_retention_by_size_never_takes_the_newest() -> None:
    snapshots = with_snapshots(10, 20, 30)
    size = snapshots.size(SnapshotId(10, 1))

    def gone(bytes_max: int) -> list[int]:
        ids = snapshots.expendable(0, bytes_max=bytes_max, age_ms_max=-1, now=NOW)
        return [snapshot_id.end_offset for snapshot_id in ids]

    assert gone(3 * size) == []
    assert gone(3 * size - 1) == [10]
    assert gone(0) == [10, 20]
    assert gone(-1) == []


def test_retention_by_age_looks_at_when_it_was_written() -> None:
    snapshots = with_snapshots(10, 20)
    later = WallTime(NOW + DAY_MS)
    kept = snapshots.expendable(0, bytes_max=-1, age_ms_max=DAY_MS, now=later)
    assert kept == []
    gone = snapshots.expendable(0, bytes_max=-1, age_ms_max=DAY_MS - 1, now=later)
    assert gone == [SnapshotId(10, 1)]
    snapshots.delete(gone)
    assert snapshots.ids[1:] == MetadataSnapshots(snapshots._disk, "/log").ids


@pytest.mark.parametrize("is_power_lost", [False, True])
def test_a_crash_leaves_the_whole_file_or_none(is_power_lost: bool) -> None:
    path = f"/log/{10:020d}-{1:010d}.checkpoint"
    for moment in range(1, 7):
        disk = empty_disk()
        disk.sync_directory("/log")
        disk.crash_at = disk.operations + moment
        try:
            write_snapshot(disk, path, [bytearray(b"a" * 5000), bytearray(b"b" * 5000)])
            is_done = True
        except Crashed:
            is_done = False
        if is_power_lost:
            disk.cut_power()
        else:
            disk.kill()
        if disk.is_directory("/log") and disk.exists(path):
            assert disk.read(path) == b"a" * 5000 + b"b" * 5000
        else:
            assert not is_done
