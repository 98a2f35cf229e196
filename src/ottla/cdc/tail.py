"""Tails a PostgreSQL database: a snapshot of its tables, then every committed change, once each.

start     check the server, read the state of the topics, create what is missing
snapshot  if there is no slot: every row, at the start of the new slot
stream    every later commit, record by record; acknowledged commits are confirmed to the slot

Snapshot and stream start by taking ownership of a slot, and then read their position from the
topics.

A killed tail continues at any point: without a slot the snapshot was incomplete, and the next one
writes only the differences to the topics; a slot sends unconfirmed changes again, and those that
the last records of the partitions show as written are skipped.
"""

import asyncio
from collections.abc import Coroutine

from ottla.cdc.errors import Interrupted, InUse, NotPossible
from ottla.cdc.known_rows import KnownRows
from ottla.cdc.position import SNAPSHOT_INDEX, Position, lsn_text
from ottla.cdc.progress import Progress, Say
from ottla.cdc.settings import TailSettings
from ottla.cdc.setup import Plan, prepare
from ottla.cdc.slot_reader import AGAIN_MS, IN_USE_MS_MAX, SlotReader, pause
from ottla.cdc.snapshot import Snapshot
from ottla.cdc.table import Table
from ottla.cdc.topics import read_to_end
from ottla.cdc.writer import Writer
from ottla.client.cluster import Cluster
from ottla.client.delivery import ProducerSettings
from ottla.client.errors import TOO_LARGE, Refused
from ottla.model.types import Millis

FOR_EVER_MS: Millis = 10 * 365 * 24 * 3600 * 1000  # A broker that is down is waited for.
STOP_SECONDS_MAX = 10


class Tail:
    def __init__(
        self, cluster: Cluster, settings: TailSettings, progress: Progress, say: Say
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._progress = progress
        self._say = say

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop`, or the end if requested; raises CdcError or ClientError."""
        plan = await prepare(self._cluster, self._settings, self._say)
        producing = ProducerSettings(
            codec=self._settings.codec, delivery_ms_max=FOR_EVER_MS, stops_at_failure=True
        )
        try:
            writer = Writer(self._cluster, producing)
            await self._until_stopped(self._work(plan, writer, stop), stop)
        except TimeoutError:
            self._say("stopped before the brokers had acknowledged all; the next start goes on")
        except Refused as refused:
            if refused.code not in TOO_LARGE:
                raise
            raise NotPossible(
                f"{refused} Let the topic have larger ones: "
                "'ottla configs alter topic NAME --set max.message.bytes=...', and start again"
            ) from refused
        finally:
            plan.close()

    async def _work(self, plan: Plan, writer: Writer, stop: asyncio.Event) -> None:
        if not plan.has_slot:
            await self._snapshot(plan, writer, stop)
        if not stop.is_set():
            self._progress.phase = "stream"
            await SlotReader(
                self._cluster, self._settings, plan, writer, self._progress, self._say
            ).run(stop)

    async def _until_stopped(self, work: Coroutine[None, None, None], stop: asyncio.Event) -> None:
        """Give the work a moment to end by itself after `stop`."""
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait({task}, timeout=STOP_SECONDS_MAX)
            if not task.done():
                raise TimeoutError
            await task
        finally:
            for one in (task, stopping):
                one.cancel()
            await asyncio.gather(task, stopping, return_exceptions=True)

    async def _snapshot(self, plan: Plan, writer: Writer, stop: asyncio.Event) -> None:
        self._progress.phase = "snapshot"
        snapshot = await self._own_snapshot(stop)
        if snapshot is None:
            return
        try:
            slot = self._settings.slot
            if await plan.ask(lambda catalogue: catalogue.slot(slot)) is not None:
                return  # Another tail has taken the snapshot in the meantime.
            await asyncio.to_thread(snapshot.lock, [table.name for table in plan.tables])
            self._say(f"reading the tables as they were at {lsn_text(snapshot.lsn)}")
            async with writer.session():
                await plan.begin(writer, in_next_epoch=True)
                if not await self._copy_all(plan, snapshot, writer, stop):
                    self._say("stopped before the snapshot was complete; the next start goes on")
                    return
                await writer.flush()
                await writer.check_alone()
            await plan.ask(lambda catalogue: snapshot.keep(catalogue, slot))
            self._say(f"snapshot complete: {writer.written:,} rows written")
        except Interrupted as failure:
            raise NotPossible(
                f"{failure}: the snapshot is not complete; the next start goes on with it"
            ) from failure
        finally:
            snapshot.close()

    async def _own_snapshot(self, stop: asyncio.Event) -> Snapshot | None:
        """The snapshot, once no other tail takes one; None if stopped before."""
        clock = self._cluster.clock
        deadline = clock.monotonic() + IN_USE_MS_MAX
        while not stop.is_set():
            try:
                return await asyncio.to_thread(Snapshot, self._settings.dsn, self._settings.slot)
            except InUse as failure:
                if clock.monotonic() > deadline:
                    raise NotPossible(
                        f"{failure}; another tail takes the snapshot of slot "
                        f"{self._settings.slot}, and one slot is for one tail"
                    ) from failure
                await pause(stop, AGAIN_MS)
        return None

    async def _copy_all(
        self, plan: Plan, snapshot: Snapshot, writer: Writer, stop: asyncio.Event
    ) -> bool:
        """True when every table is copied, False if stopped before that."""
        for table in await plan.current_tables():
            await self._copy(table, plan, snapshot, writer, stop)
            if stop.is_set():
                return False
        return True

    async def _copy(
        self, table: Table, plan: Plan, snapshot: Snapshot, writer: Writer, stop: asyncio.Event
    ) -> None:
        """Write the rows that differ from the topic, and tombstones for deleted ones."""
        position = Position(snapshot.lsn, SNAPSHOT_INDEX)
        known = await self._known(table, writer)
        now = self._cluster.clock.wall
        batches = snapshot.rows(table, plan.published[table.name])

        async def write(key: bytes, value: bytes | None, op: str) -> None:
            await writer.write(
                writer.place(table.topic, key),
                key,
                value,
                op=op,
                position=position,
                xid=None,
                ts_ms=now(),
            )

        try:
            while rows := await asyncio.to_thread(next, batches, None):
                for row in rows:
                    key, value = table.key(row), table.value(row)
                    if known is None or not known.see(key, value):
                        await write(key, value, "r")
                self._progress.rows += len(rows)
                if stop.is_set():
                    return
            for key in known.unseen() if known is not None else ():
                await write(key, None, "d")
        finally:
            await asyncio.to_thread(batches.close)
            if known is not None:
                known.close()

    async def _known(self, table: Table, writer: Writer) -> KnownRows | None:
        """The topic's rows; None if it is empty."""
        places = [p for p in writer.places(table.topic) if writer.reached(p).lsn >= 0]
        if not places:
            return None
        self._say(f"{table.topic} has records: only what differs from {table.name} is written")
        known = KnownRows()
        async for message in read_to_end(self._cluster, places):
            if message.key is not None:
                known.learn(message.key, message.value)
        return known
