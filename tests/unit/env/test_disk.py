import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.env import mounts
from ottla.env.disk import RealFile, real_disk
from ottla.env.system import IOVEC_MAX

DISK = real_disk()


def test_files_grow_at_their_end(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    file = DISK.open(path, create=True)
    file.append([b"one", bytearray(b"two")])
    file.append([memoryview(b"three")])
    assert (file.size, file.read(3, 3), file.read(9, 100)) == (11, b"two", b"ee")
    file.truncate(4)
    file.append([b"!"])
    file.sync()
    assert (DISK.read(path), DISK.size(path), file.size) == (b"onet!", 5, 5)
    assert os.pread(file.fileno(), 3, 0) == b"one"
    assert file.path == path


def test_more_buffers_than_one_call_takes_are_written(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"), create=True)
    buffers = [b"%06d" % number for number in range(2 * IOVEC_MAX + 5)]
    file.append(buffers)
    assert file.read(0, file.size) == b"".join(buffers)
    assert file.size == 6 * len(buffers)


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DISK.open(str(tmp_path / "f"), create=True)
    real = os.writev

    def short(descriptor: int, buffers: list[bytes]) -> int:
        return real(descriptor, [memoryview(buffers[0])[:7]])

    monkeypatch.setattr(os, "writev", short)
    file.append([b"0123456789", b"abc", bytearray(b"ABCDEFGHIJ")])
    assert file.read(0, 100) == b"0123456789abcABCDEFGHIJ"
    assert file.size == 23


def test_a_failed_write_raises_and_the_size_is_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = DISK.open(str(tmp_path / "f"), create=True)
    real = os.writev
    calls = 0

    def fills(descriptor: int, buffers: list[bytes]) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(errno.ENOSPC, "full")
        return real(descriptor, [memoryview(buffers[0])[:4]])

    monkeypatch.setattr(os, "writev", fills)
    with pytest.raises(OSError, match="full"):
        file.append([b"0123456789"])
    assert file.size == 4
    file.truncate(0)
    assert file.size == 0


def test_short_reads_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DISK.open(str(tmp_path / "f"), create=True)
    file.append([b"0123456789"])
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: real(fd, min(size, 3), at))
    assert file.read(1, 8) == b"12345678"
    assert file.read(5, 100) == b"56789"


def test_an_open_file_stays_readable_after_unlink(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    file = DISK.open(path, create=True)
    file.append([b"still here"])
    DISK.remove(path)
    assert file.read(0, 100) == b"still here"


def test_the_last_reference_closes_the_descriptor(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"), create=True)
    descriptor = file.fileno()
    os.fstat(descriptor)
    del file
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"), create=True)
    file.close()
    file.close()
    assert isinstance(file, RealFile)


def test_children_do_not_inherit_descriptors(tmp_path: Path) -> None:
    file = DISK.open(str(tmp_path / "f"), create=True)
    assert fcntl.fcntl(file.fileno(), fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_directories_and_names(tmp_path: Path) -> None:
    root = str(tmp_path)
    DISK.make_directory(f"{root}/a/b")
    DISK.make_directory(f"{root}/a/b")
    DISK.open(f"{root}/a/z", create=True).close()
    assert DISK.list(f"{root}/a") == ["b", "z"]
    assert DISK.is_directory(f"{root}/a/b")
    assert not DISK.is_directory(f"{root}/a/z")
    DISK.rename(f"{root}/a/z", f"{root}/a/y")
    assert (DISK.exists(f"{root}/a/z"), DISK.exists(f"{root}/a/y")) == (False, True)
    DISK.sync_directory(f"{root}/a")
    DISK.remove_directory(f"{root}/a/b")
    assert DISK.list(f"{root}/a") == ["y"]
    assert DISK.modified_ms(f"{root}/a/y") > 1_600_000_000_000
    assert DISK.free_bytes(root) > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has syncfs")
def test_a_whole_disk_can_be_synced(tmp_path: Path) -> None:
    assert DISK.sync_filesystem(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        DISK.sync_filesystem(str(tmp_path / "none"))


def test_a_missing_file_is_not_created_by_accident(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        DISK.open(str(tmp_path / "f"))


def test_a_lock_excludes_this_process_and_others(tmp_path: Path) -> None:
    path = str(tmp_path / ".lock")
    lock = DISK.lock(path)
    with pytest.raises(BlockingIOError):
        DISK.lock(path)
    script = (
        "import sys; from ottla.env.disk import real_disk\n"
        "try: real_disk().lock(sys.argv[1])\n"
        "except BlockingIOError: sys.exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == 7
    lock.release()
    lock.release()
    assert subprocess.run([sys.executable, "-c", script, path], check=False).returncode == 0
    DISK.lock(path).release()


def test_the_mount_id_is_that_of_the_file_system(tmp_path: Path) -> None:
    assert DISK.mount_id(str(tmp_path)) == mounts.mount_id(str(tmp_path))
