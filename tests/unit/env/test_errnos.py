"""Transient shortages are not disk failures."""

import errno

from ottla.env.errnos import FULL, PASSING, SHORT


def test_shortages_do_not_count_as_a_failed_disk() -> None:
    assert {errno.ENOSPC, errno.EDQUOT} <= FULL
    assert {errno.EMFILE, errno.ENFILE, errno.ENOMEM} <= SHORT
    assert FULL | SHORT | {errno.EINTR} == PASSING
    assert not PASSING & {errno.EIO, errno.EROFS, errno.ENODEV, errno.ENXIO, errno.ESTALE}
