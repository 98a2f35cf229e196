"""How far the database may forget: commits of which the brokers have acknowledged every record.

Commits are confirmed in their order. That a partition's last record is written says that those
before it are, so one future for each partition of a commit is enough.
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
        """Whether nothing waits for an acknowledgement."""
        return not self._waiting

    def committed(self, end_lsn: int, futures: Sequence["asyncio.Future[Any]"]) -> None:
        self._waiting.append((end_lsn, futures))

    def advance(self) -> int:
        """Look what was acknowledged meanwhile; raises the failure of what never will be."""
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
        """The database has sent all up to here, and none of it waits."""
        if self.is_empty:
            self.lsn = max(self.lsn, lsn)
