import subprocess
import sys
from pathlib import Path

import pytest

from ottla.env import mounts, system

linux = pytest.mark.skipif(sys.platform != "linux", reason="Elsewhere no mount is known.")


@linux
def test_the_mount_id_is_there_and_the_same_in_another_process(tmp_path: Path) -> None:
    own = mounts.mount_id(str(tmp_path))
    assert own.startswith(system.boot_id())
    script = "import sys; from ottla.env.mounts import mount_id; print(mount_id(sys.argv[1]))"
    other = subprocess.check_output([sys.executable, "-c", script, str(tmp_path)], text=True)
    assert other.strip() == own


def test_the_mount_id_is_unknown_where_the_boot_or_the_mount_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "superblock_id", lambda _: "")
    monkeypatch.setattr(mounts, "unique_mount_id", lambda _: "")
    assert mounts.mount_id(str(tmp_path)) == ""
    monkeypatch.setattr(mounts, "superblock_id", lambda _: "ext4-1")
    monkeypatch.setattr(system, "boot_id", lambda: "")
    assert mounts.mount_id(str(tmp_path)) == ""


@linux
def test_a_file_system_without_a_device_has_the_id_of_its_mount() -> None:
    assert mounts.superblock_id("/proc") == ""
    own = mounts.unique_mount_id("/proc")
    assert own == mounts.unique_mount_id("/proc/self")
    assert not own or own != mounts.unique_mount_id("/sys")


def test_a_missing_path_has_no_mount_id(tmp_path: Path) -> None:
    assert mounts.mount_id(str(tmp_path / "nothing")) == ""
