"""The stream of a slot: messages as they come, and word to the server how far it may forget."""

import asyncio
from types import TracebackType

from ottla.cdc.postgres import Connection, connect, told
from ottla.cdc.table import identifier
from ottla.model.types import Millis

STATUS_SECONDS = 10  # How often psycopg2 answers by itself; we do it more often.


class Stream:
    """Belongs to one task; nothing of it blocks once it is open."""

    def __init__(self, dsn: str, slot: str, publication: str) -> None:
        self._connection: Connection = connect(dsn, replication=True)
        self._cursor = self._connection.cursor()
        try:
            with told():
                self._cursor.start_replication(
                    slot,
                    options={"proto_version": "1", "publication_names": identifier(publication)},
                    decode=False,
                    status_interval=STATUS_SECONDS,
                )
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    @property
    def wal_end(self) -> int:
        """How far the server had come when it last said something."""
        return int(self._cursor.wal_end)

    def read(self, messages_max: int) -> list[bytes]:
        """Messages that have come; none if there are none at the moment."""
        payloads: list[bytes] = []
        with told():
            while len(payloads) < messages_max:
                message = self._cursor.read_message()
                if message is None:
                    break
                payloads.append(message.payload)
        return payloads

    async def wait(self, wait_ms: Millis) -> None:
        """Wait for more to come, but not for ever."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._connection.fileno(), readable.set)
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await readable.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._connection.fileno())

    def confirm(self, lsn: int, *, asks: bool = False) -> None:
        """What lies before is written; `asks` the server to say where it is."""
        with told():
            self._cursor.send_feedback(write_lsn=lsn, flush_lsn=lsn, reply=asks, force=True)
