"""A client of its own for a tool or a script: the real network, clock and randomness.

async def names(cluster: Cluster) -> list[str]: ...

run(names, bootstrap="localhost:9092")
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.client.cluster import ClientSettings, Cluster
from ottla.env.clock import RealClock
from ottla.env.loop import DispatchLoop
from ottla.env.network import Address
from ottla.env.sockets import SocketNetwork
from ottla.env.workers import ThreadWorkers

Value = TypeVar("Value")

PORT_DEFAULT = 9092


def parse_addresses(text: str) -> list[Address]:
    """`host:port,host:port`; ValueError says in a sentence what is wrong."""
    addresses = [_parse_address(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ValueError("give the address of a broker, like localhost:9092")
    return addresses


def open_cluster(
    loop: DispatchLoop, addresses: list[Address], settings: ClientSettings | None = None
) -> Cluster:
    """A cluster over real sockets; `close` it. No connection is made before one is needed."""
    return Cluster(
        addresses,
        network=SocketNetwork(loop, ThreadWorkers()),
        clock=RealClock(),
        source=random.Random(),  # noqa: S311  It spreads load and retries; it guards nothing.
        settings=settings,
    )


def run(
    work: Callable[[Cluster], Awaitable[Value]],
    bootstrap: str,
    settings: ClientSettings | None = None,
) -> Value:
    """Do some async work with a cluster, from code that is not async."""
    addresses = parse_addresses(bootstrap)

    async def main() -> Value:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, DispatchLoop), "the runner made it"
        cluster = open_cluster(loop, addresses, settings)
        try:
            return await work(cluster)
        finally:
            cluster.close()

    with asyncio.Runner(loop_factory=DispatchLoop) as runner:
        return runner.run(main())


def _parse_address(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if text.endswith("]") or not colon:
        host, port = text, str(PORT_DEFAULT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not an address: host:port expected, like localhost:9092")
    return Address(host, int(port))
