"""A real file system that is mounted again: whether the next process knows what that may cost."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.env.disk import real_disk
from ottla.env.mounts import mount_id, unique_mount_id
from ottla.model.types import WallTime
from ottla.storage.config import LogConfig
from ottla.storage.directory import LogDirectory
from ottla.storage.directory_loader import load_logs
from ottla.storage.identity import MetaProperties
from tests.process.disks import MB, fail, mount, needs_root

pytestmark = needs_root
EPOCH = 7
META = MetaProperties(cluster_id="cluster", node_id=1, directory_id=b"d" * 16)


@pytest.fixture(params=["ext4", "tmpfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system with a device of its own, and one that has none."""
    point = tmp_path / "disk"
    if request.param == "ext4":
        image = tmp_path / "image"
        with image.open("wb") as file:
            file.truncate(16 * MB)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        mount(point, "-o", "loop", str(image))
    else:
        mount(point, "-t", "tmpfs", "tmpfs")
    if not mount_id(str(point)):
        pytest.skip("This kernel tells no mount from the next.")
    yield point
    subprocess.run(["umount", "-l", str(point)], check=True)


def serve(disk: Path) -> LogDirectory:
    """Open the log directory on `disk` as a starting broker does."""
    directory = LogDirectory.open(real_disk(), f"{disk}/log")
    directory.format(META)
    load_logs(directory, lambda _: LogConfig(), WallTime(0))
    return directory


def mount_again(disk: Path) -> None:
    subprocess.run(["umount", str(disk)], check=True)
    subprocess.run(["mount", "-o", "loop", str(disk.parent / "image"), str(disk)], check=True)


def test_a_killed_process_is_trusted_while_the_disk_stays_mounted(disk: Path) -> None:
    killed = serve(disk)
    killed.marks.note_broker_epoch(EPOCH)
    killed.abandon()
    again = serve(disk)
    assert (again.marks.broker_epoch, again.marks.power_was_lost) == (EPOCH, False)
    again.abandon()


@pytest.mark.parametrize("disk", ["ext4"], indirect=True)
@pytest.mark.parametrize("is_seen", [True, False])
def test_a_disk_that_failed_and_is_mounted_again_counts_as_a_power_loss(
    disk: Path, is_seen: bool
) -> None:
    """The machine has the same boot id, and the epoch of the last process may be on the disk."""
    killed = serve(disk)
    killed.marks.note_broker_epoch(EPOCH)
    subprocess.run(["sync", "-f", str(disk)], check=True)
    fail(disk)
    if is_seen:
        with pytest.raises(OSError, match="Input/output error") as raised:
            (disk / "log" / "new").write_bytes(b"x")
        killed.failed(raised.value)
    killed.abandon()
    mount_again(disk)
    again = serve(disk)
    assert (disk / "log" / "ottla.broker-epoch").exists()
    assert (again.marks.broker_epoch, again.marks.power_was_lost) == (None, True)
    again.abandon()


@pytest.mark.parametrize("disk", ["ext4"], indirect=True)
def test_a_bind_mount_of_the_same_file_system_has_the_same_id(disk: Path, tmp_path: Path) -> None:
    """As a container sees it: each start of it is another mount."""
    bound = tmp_path / "bound"
    mount(bound, "--bind", str(disk))
    try:
        assert unique_mount_id(str(bound)) != unique_mount_id(str(disk)) or not unique_mount_id("/")
        assert mount_id(str(bound)) == mount_id(str(disk))
    finally:
        subprocess.run(["umount", str(bound)], check=True)
