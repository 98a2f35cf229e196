"""A world of connections over hostile descriptors, to drive the real channels.

Two hosts, some connections, a few files. Each connection has a plan drawn from the seed: pieces to
send in both directions, and at most one misfortune: a reset, a close, a file that is truncated
(and perhaps rewritten) before it is sent, or a peer that raises in one of its methods. Reads and
writes are short or answer EAGAIN at any point, and `accept` fails.
"""

import asyncio
from random import Random
from typing import Any

from ottla.env.channels import SocketChannel
from ottla.env.disk import File
from ottla.env.files import FileRange
from ottla.env.network import Channel, Piece
from ottla.simulation.world.disk import SimulatedDisk
from ottla.simulation.world.loop import MILLISECOND, VirtualLoop
from ottla.simulation.world.network import LinkSettings, SimulatedNetwork
from ottla.simulation.world.process import task_factory
from ottla.simulation.world.sockets import SimulatedSocket
from ottla.simulation.world.trace import Trace

PORT = 9092
ROUNDS = 3
TURNS_MAX = 200_000
SECONDS = 60.0  # Of virtual time: enough for every plan to come to its end.
MISFORTUNES = ("none", "none", "reset", "close", "truncate", "rewrite", "raise")
METHODS = ("buffer", "received", "sent", "closed")


class Injected(Exception):
    """Raised by a peer, as its plan says."""


class Story:
    """One connection: what each side was told to send, and what becomes of it."""

    def __init__(self, number: int, random: Random) -> None:
        self.number = number
        self.misfortune = random.choice(MISFORTUNES)
        self.raises_in = random.choice(METHODS) if self.misfortune == "raise" else ""
        self.raises_at = random.randrange(4)
        self.ends: dict[str, SchedulePeer] = {}

    @property
    def is_unhappy(self) -> bool:
        return self.misfortune != "none"


class SchedulePeer:
    """A peer that records, pauses, and checks that it is called as the contract says."""

    def __init__(self, story: Story, name: str, channel: Channel, random: Random) -> None:
        self.story = story
        self.channel = channel
        self.told = bytearray()  # To send.
        self.got = bytearray()
        self.times_closed = 0
        self.calls_of_sent = 0
        self._raises_in = story.raises_in if name == "server" else ""
        self._calls = 0
        self._random = random
        self._buffer = bytearray(random.choice((500, 5_000, 100_000)))

    def buffer(self) -> memoryview:
        self._called("buffer")
        return memoryview(self._buffer)

    def received(self, count: int) -> None:
        assert 0 < count <= len(self._buffer)
        self.got += self._buffer[:count]
        self._called("received")
        if self._random.random() < 0.05:
            self.channel.pause_reading()
            delay = self._random.expovariate(1000)
            asyncio.get_running_loop().call_later(delay, self.channel.resume_reading)

    def sent(self) -> None:
        assert self.channel.unsent == 0, "sent() is called when everything has left"
        self.calls_of_sent += 1
        self._called("sent")

    def closed(self) -> None:
        self.times_closed += 1
        self._called("closed")

    def send(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            self.told += piece.read() if isinstance(piece, FileRange) else piece
        self.channel.send(pieces)

    def _called(self, method: str) -> None:
        assert self.times_closed == (method == "closed"), "nothing is called after closed()"
        if method == self._raises_in:
            self._calls += 1
            if self._calls > self.story.raises_at or method == "closed":
                self._raises_in = ""
                raise Injected(method)


class Schedule:
    """All of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.errors: list[dict[str, Any]] = []
        self.stories: list[Story] = []
        self._loop = VirtualLoop()
        self._loop.turns_max = TURNS_MAX  # More go round without progress.
        self._loop.set_task_factory(task_factory)
        self._loop.set_exception_handler(lambda _, context: self.errors.append(context))
        self._disk = SimulatedDisk(self.random)
        self._disk.make_directory("/data")
        trace = Trace(lambda: self._loop.now_ns)
        self._network = SimulatedNetwork(self._loop, self.random, trace)
        self._network.link = LinkSettings(
            delay_ns_mean=self.random.choice((0, MILLISECOND // 10, MILLISECOND)),
            piece_bytes_max=self.random.choice((1_000, 64 << 10)),
            window_bytes=self.random.choice((3_000, 20_000, 256 << 10)),
            short_probability=self.random.choice((0.1, 0.5)),
            again_probability=self.random.choice((0.0, 0.1, 0.4)),
            uncached_probability=self.random.choice((0.0, 0.3)),
            accept_failure_probability=self.random.choice((0.0, 0.0, 0.3)),
        )

    def run(self) -> None:
        try:
            self._loop.run_until_complete(self._run())
        finally:
            self._loop.close()

    async def _run(self) -> None:
        server, client = self._network.host("server"), self._network.host("client")
        self.server = server
        waiting: list[Story] = []

        def accept(channel: Channel) -> SchedulePeer:
            # Connections are accepted in the order in which they were made.
            return self._opened(waiting.pop(0), "server", channel)

        listening = await server.listen("", PORT, accept)
        listening.start()
        for number in range(self.random.randint(1, 6)):
            story = Story(number, self.random)
            self.stories.append(story)
            waiting.append(story)
            await client.connect(
                "server", PORT, lambda channel, story=story: self._opened(story, "client", channel)
            )
            if story.misfortune == "reset" and self.random.random() < 0.5:
                self._reset(story)  # Before it is accepted, or anybody has asked who it is.
            if self.random.random() < 0.3:
                await asyncio.sleep(self.random.expovariate(1000))
        await asyncio.sleep(SECONDS)
        listening.close()

    def _opened(self, story: Story, name: str, channel: Channel) -> SchedulePeer:
        peer = story.ends[name] = SchedulePeer(story, name, channel, self.random)
        self._loop.create_task(self._send(peer, name))
        return peer

    async def _send(self, peer: SchedulePeer, name: str) -> None:
        story, unhappy_at = peer.story, self.random.randrange(ROUNDS)
        for round_number in range(ROUNDS):
            await asyncio.sleep(self.random.choice((0, 0.0001, 0.001)))
            if peer.times_closed:
                return
            path = f"/data/{story.number}-{name}-{round_number}"
            file = self._disk.open(path, create=True)
            file.append([self.random.randbytes(self.random.choice((10, 3_000, 60_000)))])
            peer.send(self._pieces(file))
            if round_number == unhappy_at and name == "server":
                self._befall(story, peer, file)

    def _pieces(self, file: File) -> list[Piece]:
        pieces: list[Piece] = []
        for _ in range(self.random.randint(1, 3)):
            data = self.random.randbytes(self.random.choice((0, 1, 50, 4_000)))
            kind = self.random.choice((bytes, bytearray, memoryview))
            pieces.append(kind(data))
            if self.random.random() < 0.5:
                position = self.random.randrange(file.size)
                pieces.append(FileRange(file, position, file.size - position))
        return pieces

    def _reset(self, story: Story) -> None:
        channel = story.ends["client"].channel
        assert isinstance(channel, SocketChannel), "the real one"
        if isinstance(channel._socket, SimulatedSocket):
            channel._socket.reset()

    def _befall(self, story: Story, peer: SchedulePeer, file: File) -> None:
        if story.misfortune == "close":
            peer.channel.close()
        elif story.misfortune == "reset":
            self._reset(story)
        elif story.misfortune in ("truncate", "rewrite"):
            size = file.size
            file.truncate(self.random.randrange(size))
            if story.misfortune == "rewrite":
                file.append([self.random.randbytes(size)])
