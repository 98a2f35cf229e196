"""Reads a slot's stream, writes the records of each change, and confirms acknowledged commits.

The open stream is the ownership of the slot: the server gives it to one process at a time. The
owner first reads its position from the topics, then writes (`numbering` explains how the broker
refuses a former owner). If the stream ends, it is opened again, and all of this is repeated. If a
broker is down, the producer retries until everything is written, and the stream waits.
"""

import asyncio

from ottla.cdc.catalogue import Catalogue
from ottla.cdc.changes import Change, Changes, Committed
from ottla.cdc.confirmation import Confirmation
from ottla.cdc.errors import Interrupted, NotPossible
from ottla.cdc.pgoutput import Relation, parse
from ottla.cdc.progress import Progress, Say
from ottla.cdc.rows import Rows
from ottla.cdc.settings import TailSettings
from ottla.cdc.setup import Plan
from ottla.cdc.stream import Stream
from ottla.cdc.writer import Writer
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model.types import Millis

MESSAGES_AT_A_TIME = 500
IDLE_MS: Millis = 200
CONFIRM_MS: Millis = 1_000
IN_USE_MS_MAX: Millis = 10_000  # The server may notice late that a killed tail is gone.
AGAIN_MS: Millis = 500


class SlotReader:
    def __init__(
        self,
        cluster: Cluster,
        settings: TailSettings,
        plan: Plan,
        writer: Writer,
        progress: Progress,
        say: Say,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._plan = plan
        self._writer = writer
        self._progress = progress
        self._say = say
        self._rows = Rows(cluster, settings, plan, writer, say)
        self._confirmation = Confirmation()
        self._end_lsn: int | None = None

    async def run(self, stop: asyncio.Event) -> None:
        if self._settings.stops_at_end:
            self._end_lsn = await self._plan.ask(Catalogue.wal_lsn)
        clock = self._cluster.clock
        since: Millis | None = None  # Time of the first failure.
        has_begun = False
        while not stop.is_set():
            try:
                with await self._open() as stream:
                    if since is not None or not has_begun:
                        self._say(f"following slot {self._settings.slot}")
                    since, has_begun = None, True
                    await self._follow(stream, stop)
                    return
            except Interrupted as failure:
                now = clock.monotonic()
                if since is None:
                    since = now
                    self._say(f"{failure}; trying again")
                if not has_begun and now - since > IN_USE_MS_MAX:
                    raise NotPossible(
                        f"{failure}; one slot is for one tail: --slot names another"
                    ) from failure
                await pause(stop, AGAIN_MS)

    async def _open(self) -> Stream:
        settings = self._settings
        return await asyncio.to_thread(Stream, settings.dsn, settings.slot, settings.publication)

    async def _follow(self, stream: Stream, stop: asyncio.Event) -> None:
        self._confirmation = Confirmation(self._confirmation.lsn)
        beating = asyncio.ensure_future(self._keep_confirming(stream))
        try:
            async with self._writer.session():
                await self._begin()
                await self._take_all(stream, stop)
                await self._writer.flush()
                stream.confirm(self._confirmation.advance())
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _begin(self) -> None:
        try:
            await self._plan.begin(self._writer)
        except ClientError as failure:
            if not failure.is_retriable:
                raise
            raise Interrupted(str(failure)) from failure

    async def _take_all(self, stream: Stream, stop: asyncio.Event) -> None:
        changes = Changes()
        while not stop.is_set():
            payloads = stream.read(MESSAGES_AT_A_TIME)
            for payload in payloads:
                for event in changes.take(parse(payload)):
                    match event:
                        case Change():
                            await self._rows.write(event)
                        case Committed(end_lsn):
                            futures = self._writer.take_unconfirmed()
                            self._confirmation.committed(end_lsn, futures)
                            self._progress.commits += 1
                        case Relation():
                            await self._rows.relation(event)
            self._confirmation.advance()
            if not payloads and not changes.is_inside:
                self._confirmation.nothing_before(stream.wal_end)
            self._tell(stream)
            if self._end_lsn is not None and self._confirmation.lsn >= self._end_lsn:
                return
            if payloads:
                await asyncio.sleep(0)  # Let the producer run.
            else:
                await stream.wait(IDLE_MS)

    async def _keep_confirming(self, stream: Stream) -> None:
        """Keep confirming while the brokers are slow: otherwise the server closes the
        connection.
        """
        while True:
            stream.confirm(self._confirmation.lsn, asks=True)
            await asyncio.sleep(CONFIRM_MS / 1000)

    def _tell(self, stream: Stream) -> None:
        progress, writer = self._progress, self._writer
        progress.changes, progress.passed_over = self._rows.written, writer.passed_over
        progress.confirmed_lsn = self._confirmation.lsn
        progress.wal_lsn = max(stream.wal_end, progress.wal_lsn)


async def pause(stop: asyncio.Event, wait_ms: Millis) -> None:
    try:
        async with asyncio.timeout(wait_ms / 1000):
            await stop.wait()
    except TimeoutError:
        pass
