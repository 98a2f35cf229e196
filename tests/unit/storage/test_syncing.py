import errno

import pytest

from ottla.storage.checkpoint import decode_epochs
from ottla.storage.syncing import DirectoryToSync, EpochsToWrite, PathToSync, sync_all
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
