"""Connections that no task uses at the moment: they outlive tasks, as Spark's Python workers do."""

import os

from ottla.client.blocking_connection import BlockingConnection
from ottla.client.dialer import Dialer
from ottla.env.network import Address
from ottla.model.types import Millis
from ottla.spark.options import Access

# By process id too: a fork must not share its parent's sockets.
_idle: dict[tuple[int, Address, Dialer], BlockingConnection] = {}


def borrow(
    access: Access, address: Address, timeout_ms: Millis | None = None
) -> tuple[BlockingConnection, bool]:
    """A connection, and whether it is new: the broker may have closed an idle one meanwhile."""
    timeout_ms = access.request_ms_max if timeout_ms is None else timeout_ms
    connection = _idle.pop((os.getpid(), address, access.dialer), None)
    if connection is None:
        return access.dialer.dial_blocking(address, timeout_ms=timeout_ms), True
    connection.set_timeout(timeout_ms)
    return connection, False


def give_back(access: Access, connection: BlockingConnection) -> None:
    key = (os.getpid(), connection.address, access.dialer)
    if not connection.is_idle or key in _idle:
        connection.close()
    else:
        _idle[key] = connection


def close_idle() -> None:
    """Close all idle connections; a worker that ends does so by itself."""
    while _idle:
        _idle.popitem()[1].close()
