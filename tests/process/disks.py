"""File systems of a test's own, which fill up or fail when it wants them to."""

import fcntl
import os
import struct
import subprocess
from pathlib import Path

import pytest

MB = 1 << 20
EXT4_IOC_SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, 2

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="Only root may mount a small disk."
)


def mount(path: Path, *options: str) -> None:
    path.mkdir()
    mounted = subprocess.run(
        ["mount", *options, str(path)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"No file system can be mounted here: {mounted.stderr}")


def fail(disk: Path) -> None:
    """From now on every write to this file system is an I/O error."""
    directory = os.open(disk, os.O_RDONLY)
    fcntl.ioctl(directory, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
    os.close(directory)
