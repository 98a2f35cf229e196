"""A small world for tests of the simulated network: two hosts, and peers that keep records."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from ottla.env.network import Channel
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.process import task_factory
from ottla.simulation.world.trace import Trace


class Recorder:
    """A peer that keeps what it gets."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.data = bytearray()
        self.times_sent = 0
        self.is_closed = False
        self._buffer = bytearray(4096)
        self.on_data: Callable[[Recorder], None] = lambda _: None

    def buffer(self) -> memoryview:
        return memoryview(self._buffer)

    def received(self, count: int) -> None:
        self.data += self._buffer[:count]
        self.on_data(self)

    def sent(self) -> None:
        self.times_sent += 1

    def closed(self) -> None:
        self.is_closed = True


class OpenFile:
    def __init__(self, data: bytes) -> None:
        self.path = "file"
        self.size = len(data)
        self.truncations = 0
        self._data = data

    def read(self, position: int, size: int) -> bytes:
        return self._data[position : position + size]


World = Callable[[SimulatedNetwork], Awaitable[None]]


def run(world: World, seed: int = 1) -> str:
    loop = VirtualLoop()
    loop.set_task_factory(task_factory)
    trace = Trace(lambda: loop.now_ns)
    try:
        loop.run_until_complete(world(SimulatedNetwork(loop, Random(seed), trace)))
    finally:
        loop.close()
    return trace.digest()


async def pair(network: SimulatedNetwork) -> tuple[Recorder, Recorder]:
    """Both peers of a connection: the client's and the server's."""
    accepted: list[Recorder] = []
    connected: list[Recorder] = []

    def accept(channel: Channel) -> Recorder:
        accepted.append(Recorder(channel))
        return accepted[0]

    def begin(channel: Channel) -> Recorder:
        connected.append(Recorder(channel))
        return connected[0]

    (await network.host("server").listen("", 9092, accept)).start()
    await network.host("client").connect("server", 9092, begin)
    await asyncio.sleep(0.001)  # Until the server has polled.
    return connected[0], accepted[0]
