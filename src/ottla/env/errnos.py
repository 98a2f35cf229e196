"""Which errors of the operating system say that a disk has failed: all but those named here."""

import errno
from typing import Final

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# The process, or the machine, has no more descriptors or memory.
SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# A read of bytes that are there: the disk, or what the file system keeps of it, is bad.
UNREADABLE: Final = frozenset(
    {errno.EIO, errno.EBADMSG, errno.ESTALE, getattr(errno, "EUCLEAN", errno.EIO)}
)
PASSING: Final = FULL | SHORT | {errno.EINTR}  # The same call may succeed later.
