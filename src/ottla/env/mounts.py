"""Identity of a mounted file system: shows a restarted process whether writes may be lost.

A killed process loses no writes: the kernel keeps them until the file system is unmounted or the
machine restarts. A file system that failed may lose all unsynced writes when it is mounted again,
without a restart of the machine.
"""

import os
import sys
from contextlib import suppress
from typing import Final

from ottla.env import system

# Drivers with a sysfs directory for each mounted device, removed with the superblock.
_DRIVERS: Final = ("ext4", "xfs", "f2fs")

_STATX_BYTES: Final = 256
_STATX_MOUNT_ID_UNIQUE: Final = 0x4000  # Since Linux 6.8; unique until a restart.
_STATX_MOUNT_ID_AT: Final = 144
_AT_FDCWD: Final = -100


def mount_id(path: str) -> str:
    """Changes when the machine restarts or the file system of `path` is mounted; "" if unknown.

    A new process sees the same id; with ext4, xfs and f2fs so does a new container, which sees the
    file system through another bind mount.
    """
    boot = system.boot_id()
    mounted = superblock_id(path) or unique_mount_id(path) if boot else ""
    return f"{boot}/{mounted}" if mounted else ""


def superblock_id(path: str) -> str:
    """Driver and sysfs inode of the mounted device; sysfs does not reuse inode numbers."""
    with suppress(OSError):
        device = os.stat(path).st_dev
        link = os.readlink(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
        for driver in _DRIVERS:
            with suppress(FileNotFoundError):
                inode = os.stat(f"/sys/fs/{driver}/{os.path.basename(link)}").st_ino
                return f"{driver}-{inode}"
    return ""


def unique_mount_id(path: str) -> str:
    """Id of the mount; a bind mount of the same file system has another."""
    import ctypes  # Needed only at start, and only without a sysfs entry.

    try:
        statx = ctypes.CDLL(None).statx
    except AttributeError:
        return ""
    found = ctypes.create_string_buffer(_STATX_BYTES)
    failed = statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_MOUNT_ID_UNIQUE, found)
    is_told = int.from_bytes(found.raw[:4], sys.byteorder) & _STATX_MOUNT_ID_UNIQUE
    if failed or not is_told:
        return ""
    number = found.raw[_STATX_MOUNT_ID_AT : _STATX_MOUNT_ID_AT + 8]
    return f"mount-{int.from_bytes(number, sys.byteorder)}"
