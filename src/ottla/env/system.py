"""What differs between Linux and macOS, decided once.

Everything else in Ottla calls these and does not ask which system it runs on.
"""

import os
import socket
import sys
from collections.abc import Callable
from typing import Final

# More data follows at once: the kernel need not send a short segment before a file's bytes.
MSG_MORE: Final[int] = getattr(socket, "MSG_MORE", 0)

HAS_SENDFILE: Final = hasattr(os, "sendfile")

IOVEC_MAX: Final = min(os.sysconf("SC_IOV_MAX") if hasattr(os, "sysconf") else 16, 1024)


def _sync_data_darwin(fd: int) -> None:
    import fcntl

    # A plain fsync there leaves the bytes in the drive's cache.
    fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined]


sync_data: Final[Callable[[int], None]] = (
    _sync_data_darwin if sys.platform == "darwin" else os.fdatasync
)


def is_cached(fd: int, position: int, size: int) -> bool:
    """Whether the page cache has these bytes, so that a read would not wait for a disk.

    Where the system cannot tell, the answer is no, and a worker reads.
    """
    if not _HAS_NOWAIT:
        return False
    try:
        return os.preadv(fd, [_probe], position + max(size - 1, 0), os.RWF_NOWAIT) >= 0
    except BlockingIOError:
        return False
    except OSError:
        return True  # Whatever is wrong, the read itself will say it.


_HAS_NOWAIT = hasattr(os, "RWF_NOWAIT") and hasattr(os, "preadv")
_probe = bytearray(1)
