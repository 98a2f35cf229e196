import os
import resource
import sys
from pathlib import Path

import pytest

from ottla.env import system


def test_bytes_just_written_are_cached(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 10_000)
    with path.open("rb") as file:
        cached = system.is_cached(file, 0, 10_000)
        assert cached or not hasattr(os, "RWF_NOWAIT")
        assert isinstance(system.is_cached(file, 9_999, 0), bool)


def test_data_is_synced(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    try:
        os.write(descriptor, b"abc")
        system.sync_data(descriptor)
    finally:
        os.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        system.sync_data(descriptor)


def test_a_filesystem_is_synced_where_the_system_can(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        assert system.sync_filesystem(descriptor) == (sys.platform == "linux")
    finally:
        os.close(descriptor)
    if sys.platform == "linux":
        with pytest.raises(OSError, match="Bad file descriptor"):
            system.sync_filesystem(descriptor)


def test_the_boot_id_is_there_and_stays() -> None:
    assert system.boot_id() == system.boot_id()
    if sys.platform in ("linux", "darwin"):
        assert system.boot_id()


def test_the_descriptor_limit_is_raised_to_what_is_allowed() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
        raised = system.raise_descriptor_limit()
        assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert raised > 256
        assert system.raise_descriptor_limit() == raised
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_constants_for_the_network_exist() -> None:
    assert system.IOVEC_MAX >= 16
    assert system.MSG_MORE >= 0
    assert isinstance(system.HAS_SENDFILE, bool)
