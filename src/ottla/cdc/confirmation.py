"""The position that may be confirmed to the slot: commits with all records acknowledged.

Commits are confirmed in order. If a partition's last record is acknowledged, so are those before
it: one future for each partition of a commit is enough.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any


class Confirmation:
    def __init__(self, lsn: int = 0) -> None:
        self.lsn = lsn
        self._waiting: deque[tuple[int, Sequence[asyncio.Future[Any]]]] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether no acknowledgement is outstanding."""
        return not self._waiting

    def committed(self, end_lsn: int, futures: Sequence["asyncio.Future[Any]"]) -> None:
        self._waiting.append((end_lsn, futures))

    def advance(self) -> int:
        """Advance past acknowledged commits; raises the error of a failed record."""
        while self._waiting:
            end_lsn, futures = self._waiting[0]
            for future in futures:
                if not future.done():
                    return self.lsn
                future.result()
            self._waiting.popleft()
            self.lsn = max(self.lsn, end_lsn)
        return self.lsn

    def nothing_before(self, lsn: int) -> None:
        """The database has sent everything up to `lsn`, and nothing before it is outstanding."""
        if self.is_empty:
            self.lsn = max(self.lsn, lsn)
