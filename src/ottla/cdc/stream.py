"""The stream of a replication slot: messages, and confirmation of positions."""

import asyncio
from types import TracebackType

from ottla.cdc.postgres import Connection, connect, translated_errors
from ottla.cdc.table import identifier
from ottla.model.types import Millis

STATUS_SECONDS = 10  # Interval of psycopg2's own status messages; we send them more often.


class Stream:
    """Belongs to one task; does not block once it is open."""

    def __init__(self, dsn: str, slot: str, publication: str) -> None:
        self._connection: Connection = connect(dsn, replication=True)
        self._cursor = self._connection.cursor()
        try:
            with translated_errors():
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
        """Last reported end of the server's log."""
        return int(self._cursor.wal_end)

    def read(self, messages_max: int) -> list[bytes]:
        """Received messages; empty if there are none now."""
        payloads: list[bytes] = []
        with translated_errors():
            while len(payloads) < messages_max:
                message = self._cursor.read_message()
                if message is None:
                    break
                payloads.append(message.payload)
        return payloads

    async def wait(self, wait_ms: Millis) -> None:
        """Wait up to `wait_ms` for more messages."""
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
        """Confirm that everything before `lsn` is written; `asks` requests the server's
        position.
        """
        with translated_errors():
            self._cursor.send_feedback(write_lsn=lsn, flush_lsn=lsn, reply=asks, force=True)
