"""Opens connections to brokers: every connection of brokers, tools, CDC and Spark is opened here.

A connection is handed out after its handshake. A failure before that is CannotConnect, whose cause
is the error of the network or of the handshake.
"""

import asyncio
import socket
from dataclasses import dataclass

from ottla.client.blocking_connection import BlockingConnection
from ottla.client.connection import Connection
from ottla.client.errors import ClientError, cannot_connect
from ottla.env.network import Address, Channel, Network
from ottla.model.types import Millis

CONNECT_MS_MAX: Millis = 5_000
OF_CONNECTING = (OSError, ClientError, ValueError)  # The last one is about the host's name.


@dataclass(frozen=True, slots=True)
class Dialer:
    client_id: str

    async def dial(self, network: Network, address: Address, *, timeout_ms: Millis) -> Connection:
        """Connect within `timeout_ms`, the handshake included."""
        made: list[Connection] = []

        def accept(channel: Channel) -> Connection:
            made.append(Connection(channel, address, self.client_id))
            return made[0]

        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await network.connect(address.host, address.port, accept)
                await made[0].negotiate()
            return made[0]
        except BaseException as error:
            for connection in made:
                connection.close()
            if isinstance(error, OF_CONNECTING):
                raise cannot_connect(address, error) from error
            raise

    def dial_blocking(self, address: Address, *, timeout_ms: Millis) -> BlockingConnection:
        """Connect; `timeout_ms` bounds each wait for the broker, CONNECT_MS_MAX that for TCP."""
        connected: socket.socket | None = None
        try:
            connected = socket.create_connection(address, min(CONNECT_MS_MAX, timeout_ms) / 1000)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = BlockingConnection(connected, address, self.client_id, timeout_ms)
            connection.negotiate()
            return connection
        except BaseException as error:
            if connected is not None:
                connected.close()
            if isinstance(error, OF_CONNECTING):
                raise cannot_connect(address, error) from error
            raise
