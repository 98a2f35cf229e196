"""A stream of changes that is reopened after its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cdc.errors import Interrupted
from ottla.cdc.progress import Progress
from ottla.cdc.slot_reader import SlotReader


class Writing:
    passed_over = 0

    @asynccontextmanager
    async def session(self) -> AsyncIterator[None]:
        yield


class Broken:
    """A stream that ends at once."""

    wal_end = 0

    def __init__(self) -> None:
        self.confirmed: list[int] = []

    def read(self, _count: int) -> list[bytes]:
        raise Interrupted("gone")

    def confirm(self, lsn: int, **_: bool) -> None:
        self.confirmed.append(lsn)


def test_a_reopened_stream_does_not_wait_for_earlier_futures() -> None:
    """The slot sends unconfirmed changes again; futures of the earlier records are dropped."""

    async def story() -> None:
        async def begin(_: object) -> None: ...

        plan: Any = SimpleNamespace(begin=begin, topics=set(), tables=[], published={}, types=None)
        writer: Any = Writing()
        cluster: Any = None
        settings: Any = SimpleNamespace(tables=[])
        reader = SlotReader(cluster, settings, plan, writer, Progress(), print)
        reader._confirmation.lsn = 7
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reader._confirmation.committed(9, [lost])
        stream: Any = Broken()
        with pytest.raises(Interrupted):
            await reader._follow(stream, asyncio.Event())
        assert reader._confirmation.is_empty
        assert reader._confirmation.lsn == 7

    asyncio.run(story())
