"""The reserve of descriptors: for files and peers, not for connections."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ottla.env.descriptors import RESERVE, opened
from ottla.env.disk import RealDisk


@pytest.fixture
def exhausted(tmp_path: Path) -> Iterator[list[int]]:
    """A process with two reserved descriptors and no free one; yields the others."""
    RESERVE.keep(2)
    taken: list[int] = []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/dev/fd"))) + 8, hard))
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield taken
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        RESERVE.keep(0)


def test_files_are_opened_with_the_reserve_when_no_descriptor_is_left(
    exhausted: list[int], tmp_path: Path
) -> None:
    disk = RealDisk()
    path = str(tmp_path / "f")
    file = disk.open(path, create=True)
    assert disk.list(str(tmp_path)) == ["f"]
    assert disk.read(path) == b""
    disk.sync_directory(str(tmp_path))
    assert not RESERVE.fill(), "one of the two is in use"
    held = opened(os.open, path, os.O_RDONLY)
    with pytest.raises(OSError, match="Too many open files"):
        disk.open(path)
    os.close(held)
    file.close()
    assert RESERVE.fill(), "both are held again"
    os.close(exhausted.pop())
    assert RESERVE.fill(), "as many as there shall be"


def test_other_errors_leave_the_reserve_alone(exhausted: list[int], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        opened(os.open, str(tmp_path / "missing"), os.O_RDONLY)
    assert RESERVE.fill()
    assert len(exhausted) > 0


def test_lent_descriptors_are_free_until_the_next_fill(
    exhausted: list[int],
) -> None:
    with pytest.raises(OSError, match="Too many open files"):
        os.open(os.devnull, os.O_RDONLY)
    RESERVE.lend()
    os.close(os.open(os.devnull, os.O_RDONLY))
    assert RESERVE.fill()
    with pytest.raises(OSError, match="Too many open files"):
        os.open(os.devnull, os.O_RDONLY)
    assert len(exhausted) > 0
