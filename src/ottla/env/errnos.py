"""Classes of operating system errors. Every error not listed here means that a disk failed."""

import errno
from typing import Final

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# The process or the machine is out of descriptors or memory.
SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# A failed read of existing bytes: the disk or the file system is damaged.
UNREADABLE: Final = frozenset(
    {errno.EIO, errno.EBADMSG, errno.ESTALE, getattr(errno, "EUCLEAN", errno.EIO)}
)
PASSING: Final = FULL | SHORT | {errno.EINTR}  # A later attempt may succeed.
