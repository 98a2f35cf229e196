import errno

import pytest

from ottla.storage.checkpoint import decode_epochs
from ottla.storage.sync_work import (
    TOGETHER_MIN,
    DirectoryToSync,
    EpochsToWrite,
    PathToSync,
    Syncable,
    sync_all,
    sync_together,
)
from tests.unit.storage.making import DIRECTORY, make_disk


def test_what_is_synced_survives_power() -> None:
    disk = make_disk()
    path = f"{DIRECTORY}/file"
    disk.open(path, create=True).append([b"abc"])
    epochs = f"{DIRECTORY}/leader-epoch-checkpoint"
    sync_all(
        [
            PathToSync(disk, path),
            EpochsToWrite(disk, epochs, [(1, 2)]),
            DirectoryToSync(disk, DIRECTORY),
        ]
    )
    disk.cut_power()
    assert disk.read(path) == b"abc"
    assert decode_epochs(epochs, disk.read(epochs)) == [(1, 2)]


def test_what_was_deleted_meanwhile_needs_no_sync() -> None:
    disk = make_disk()
    sync_all(
        [
            PathToSync(disk, "/data/gone"),
            DirectoryToSync(disk, "/gone"),
            EpochsToWrite(disk, "/gone/epochs", []),
        ]
    )


def test_a_failure_is_not_swallowed() -> None:
    disk = make_disk()
    disk.open("/data/x", create=True)
    disk.fail("sync", errno.EIO)
    with pytest.raises(OSError, match="simulated"):
        sync_all([PathToSync(disk, "/data/x")])


@pytest.mark.parametrize("count", [1, TOGETHER_MIN])
def test_much_is_synced_with_the_whole_disk(count: int) -> None:
    disk = make_disk()
    work: list[Syncable] = [DirectoryToSync(disk, DIRECTORY)]
    for number in range(count):
        path = f"{DIRECTORY}/file-{number}"
        disk.open(path, create=True).append([b"abc"])
        work.append(PathToSync(disk, path))
        work.append(EpochsToWrite(disk, f"{DIRECTORY}/epochs-{number}", [(1, number)]))
    before = disk.operations
    sync_together(disk, "/data", work)
    assert (disk.operations - before < 5 * count) == (count > 1)
    disk.cut_power()
    for number in range(count):
        assert disk.read(f"{DIRECTORY}/file-{number}") == b"abc"
        path = f"{DIRECTORY}/epochs-{number}"
        assert decode_epochs(path, disk.read(path)) == [(1, number)]


def test_where_the_whole_disk_cannot_be_synced_each_file_is() -> None:
    disk = make_disk()
    disk.sync_filesystem = lambda path: False  # type: ignore[method-assign]
    paths = [f"{DIRECTORY}/file-{number}" for number in range(TOGETHER_MIN)]
    for path in paths:
        disk.open(path, create=True).append([b"abc"])
    sync_together(
        disk, "/data", [DirectoryToSync(disk, DIRECTORY), *(PathToSync(disk, p) for p in paths)]
    )
    disk.cut_power()
    assert all(disk.read(path) == b"abc" for path in paths)
