"""All open connections of a broker: how many there may be, and which have been idle too long."""

import logging
from collections import Counter
from collections.abc import Callable

from ottla.broker.connection import Connection, Serve
from ottla.broker.memory import RequestMemory
from ottla.broker.settings import Settings
from ottla.env.network import Channel
from ottla.model.types import Monotonic

logger = logging.getLogger(__name__)


class Connections:
    def __init__(
        self,
        settings: Callable[[], Settings],
        memory: RequestMemory,
        now: Callable[[], Monotonic],
    ) -> None:
        self.open: dict[Connection, None] = {}
        self._settings = settings
        self._memory = memory
        self._now = now
        self._by_host: Counter[str] = Counter()

    def accept(self, channel: Channel, listener: str, serve: Serve) -> Connection:
        """Take a new connection in, or close it at once if there are too many already."""
        settings = self._settings()
        frame_bytes_max = settings.socket_request_max_bytes
        connection = Connection(channel, listener, serve, self._memory, frame_bytes_max)
        host = channel.remote.host
        host_max = settings.max_connections_per_ip_overrides.get(
            host, settings.max_connections_per_ip
        )
        if len(self.open) >= settings.max_connections or self._by_host[host] >= host_max:
            logger.warning("too many connections: refusing %s", channel.remote)
            connection.close()
            return connection
        self.open[connection] = None
        self._by_host[host] += 1
        connection.on_closed.append(lambda: self._closed(connection))
        return connection

    def close_idle(self) -> None:
        """Close those that were silent for too long; to be called every few seconds."""
        now, idle_ms_max = self._now(), self._settings().connections_max_idle_ms
        for connection in list(self.open):
            if connection.was_active or connection.is_waiting:
                connection.was_active = False
                connection.idle_since = now
            elif 0 <= idle_ms_max < now - connection.idle_since:
                connection.close()
        self._memory.close_stalled()

    def close_all(self) -> None:
        for connection in list(self.open):
            connection.close()

    def _closed(self, connection: Connection) -> None:
        del self.open[connection]
        host = connection.remote.host
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
