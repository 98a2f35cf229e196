"""Differences between Linux and macOS.

All other code calls these functions and does not check the system.
"""

import errno
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol


class Descriptor(Protocol):
    def fileno(self) -> int: ...


# More data follows: the kernel need not send a short segment before the file's bytes.
MSG_MORE: Final[int] = getattr(socket, "MSG_MORE", 0)

HAS_SENDFILE: Final = hasattr(os, "sendfile")

IOVEC_MAX: Final = min(os.sysconf("SC_IOV_MAX") if hasattr(os, "sysconf") else 16, 1024)


def _sync_data_darwin(fd: int) -> None:
    import fcntl

    # A plain fsync on macOS leaves the bytes in the drive's cache.
    fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined]


sync_data: Final[Callable[[int], None]] = (
    _sync_data_darwin if sys.platform == "darwin" else os.fdatasync
)


def sync_filesystem(fd: int) -> bool:
    """Sync the whole file system of this directory; False if the system does not support it."""
    if sys.platform != "linux":
        return False
    import ctypes  # Slow to import, and rarely needed.

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(fd) == 0:
        return True
    code = ctypes.get_errno()
    if code == errno.ENOSYS:
        return False
    raise OSError(code, os.strerror(code))


def boot_id() -> str:
    """Changes when the machine restarts; "" if unknown, as on all systems but Linux."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""


def raise_descriptor_limit() -> int:
    """Raise the limit of open files to the maximum: each partition and each client needs one."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # Keep the limit where it cannot be changed.
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


_DESCRIPTORS_MAX: Final = 1 << 20


def core_wait_seconds() -> float:
    """Time the calling thread was runnable without a core, since its start; 0 if unknown."""
    try:
        with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:
            # Nanoseconds running, nanoseconds waiting, number of slices.
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):  # Another system, or a kernel without these counters.
        return 0.0


def send_file(to: Descriptor, file: Descriptor, position: int, size: int) -> int:
    """Send up to `size` bytes of a file; 0 if it ends before `position`."""
    return os.sendfile(to.fileno(), file.fileno(), position, size)


def is_cached(file: Descriptor, position: int, size: int) -> bool:
    """Whether these bytes are in the page cache, so that a read would not wait for a disk.

    False if the system cannot tell: then a worker reads.
    """
    if not _HAS_NOWAIT:
        return False
    try:
        at = position + max(size - 1, 0)
        return os.preadv(file.fileno(), [_probe], at, os.RWF_NOWAIT) >= 0
    except BlockingIOError:
        return False
    except OSError:
        return True  # The read itself will report the error.


_HAS_NOWAIT = hasattr(os, "RWF_NOWAIT") and hasattr(os, "preadv")
_probe = bytearray(1)
