"""A tail's snapshot beside a resumed former tail: each change once, and no slot for less."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ottla.cdc.errors import Interrupted, NotPossible
from ottla.cdc.json_text import Types
from ottla.cdc.position import Position
from ottla.cdc.progress import Progress
from ottla.cdc.settings import TailSettings
from ottla.cdc.setup import Plan
from ottla.cdc.tail import Tail
from ottla.cdc.topics import ensure_topic, how_far
from ottla.cdc.writer import Writer
from ottla.client.cluster import Cluster
from ottla.client.delivery import ProducerSettings
from ottla.client.session import run
from ottla.testing import Broker

SETTINGS = ProducerSettings(stops_at_failure=True)
Copy = Callable[[Writer], Awaitable[None]]


async def write(writer: Writer, change: int) -> None:
    place, position = writer.places("t")[0], Position(9, change)
    await writer.write(place, b"k", b"v", op="c", position=position, xid=1, ts_ms=3)
    await writer.flush()


class Catalogue:
    def slot(self, _: str) -> None:
        """There is none yet."""


class AskedPlan(Plan):
    """A plan without a database behind it."""

    async def ask(self, look: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        return look(Catalogue())


class TakenSnapshot:
    """A snapshot without a database; `kept` has the slots created from it."""

    lsn = 9
    kept: list[str]

    def __init__(self, _dsn: str, _slot: str) -> None: ...
    def lock(self, _: list[Any]) -> None: ...
    def keep(self, _: Catalogue, slot: str) -> None:
        self.kept.append(slot)

    def close(self) -> None: ...


class CopyingTail(Tail):
    """Writes given rows in place of tables."""

    copy: Copy

    async def _copy_all(self, _plan: Any, _snapshot: Any, writer: Writer, _stop: Any) -> bool:  # noqa: ANN401
        await self.copy(writer)
        return True


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("ottla.cdc.tail.Snapshot", TakenSnapshot)
    TakenSnapshot.kept = []
    return TakenSnapshot.kept


async def take_snapshot(cluster: Cluster, copy: Copy) -> None:
    tail = CopyingTail(cluster, TailSettings("dsn"), Progress(), lambda _: None)
    tail.copy = copy
    plan = AskedPlan("dsn", None, Types(), "", False, [], {}, {"t"})
    await tail._snapshot(plan, Writer(cluster, SETTINGS), asyncio.Event())


def test_former_tail_writes_nothing_after_the_snapshot_of_another(kept: list[str]) -> None:
    async def overlap(cluster: Cluster, former: Writer) -> None:
        async with former.session():
            former.begin("t", await how_far(cluster, "t"))
            await write(former, 1)
            await take_snapshot(cluster, lambda writer: write(writer, 2))
            await write(former, 2)

    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 1, None)
        with pytest.raises(Interrupted, match="another tail has written"):
            await overlap(cluster, Writer(cluster, SETTINGS))

    with Broker() as broker:
        run(story, broker.bootstrap_servers)
    assert len(kept) == 1


def test_snapshot_into_which_a_former_tail_wrote_makes_no_slot(kept: list[str]) -> None:
    async def story(cluster: Cluster) -> None:
        await ensure_topic(cluster, "t", 1, None)
        former = Writer(cluster, SETTINGS)

        async def copy(writer: Writer) -> None:
            await write(former, 1)
            await write(writer, 2)

        async with former.session():
            former.begin("t", await how_far(cluster, "t"))
            with pytest.raises(NotPossible, match="another tail has written"):
                await take_snapshot(cluster, copy)

    with Broker() as broker:
        run(story, broker.bootstrap_servers)
    assert kept == []
