"""All open connections of a broker: how many there may be, and what ends one.

A connection is closed when it was idle too long or when a request of it raised. `failed` is the
one place where the exceptions of requests end, whichever path served them: malformed bytes are the
peer's error, anything else goes to the network's guard.
"""

import logging
from collections import Counter
from collections.abc import Callable
from struct import error as struct_error
from typing import Final

from ottla.broker.metrics.metrics import Metrics
from ottla.broker.settings.settings import Settings
from ottla.broker.wire.connection import Connection, Serve
from ottla.broker.wire.memory import RequestMemory
from ottla.env.log_limit import LogLimit
from ottla.env.network import Channel, Network
from ottla.model.errors import ProtocolError
from ottla.model.types import Monotonic

logger = logging.getLogger(__name__)

# What bytes raise that are no request.
MALFORMED: Final = (ProtocolError, struct_error, IndexError, UnicodeDecodeError)


class Connections:
    def __init__(
        self,
        settings: Callable[[], Settings],
        memory: RequestMemory,
        now: Callable[[], Monotonic],
        metrics: Metrics,
        network: Network,
    ) -> None:
        self.open: dict[Connection, None] = {}
        self._settings = settings
        self._memory = memory
        self._now = now
        self._metrics = metrics
        self._network = network
        self._by_host: Counter[str] = Counter()
        self._refusals, self._malformed = LogLimit(self._seconds), LogLimit(self._seconds)

    def accept(self, channel: Channel, listener: str, serve: Serve) -> Connection:
        """Take a new connection in, or close it at once if there are too many already."""
        settings = self._settings()
        frame_bytes_max = settings.socket_request_max_bytes
        connection = Connection(
            channel,
            listener,
            serve,
            self.failed,
            self._memory,
            frame_bytes_max,
            self._network.clock,
        )
        host = channel.remote.host
        host_max = settings.max_connections_per_ip_overrides.get(
            host, settings.max_connections_per_ip
        )
        if len(self.open) >= settings.max_connections or self._by_host[host] >= host_max:
            if self._refusals.admits():
                more = self._refusals.suppressed()
                logger.warning("too many connections: refusing %s%s", channel.remote, more)
            connection.close()
            return connection
        self.open[connection] = None
        self._by_host[host] += 1
        connection.on_closed.append(lambda: self._closed(connection))
        return connection

    def failed(self, connection: Connection, error: Exception) -> None:
        """A request, or a callback at the connection's end, raised: only the connection ends.

        Raises a failed assert again, as the network's guard does.
        """
        connection.close()
        if isinstance(error, MALFORMED):
            self._metrics.protocol_errors += 1
            if self._malformed.admits():
                more = self._malformed.suppressed()
                logger.warning(
                    "closed the connection from %s: %s%s", connection.remote, error, more
                )
        else:
            self._metrics.server_errors += 1
            self._network.peer_failed(connection.remote, error)

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

    def _seconds(self) -> float:
        return self._now() / 1000

    def _closed(self, connection: Connection) -> None:
        del self.open[connection]
        host = connection.remote.host
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]
