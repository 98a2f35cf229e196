"""A network in virtual time: hosts, and streams of bytes between them with delays and faults.

Streams are as TCP's: in order, nothing twice, nothing lost but by the end of the connection. Bytes
arrive in pieces of any size, and only so many are under way that have not been read. What one
host's turn sends leaves at the end of the turn, after the host's `before_sending` hook.
"""

import asyncio
import errno
from collections.abc import Callable, Iterable
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Final

from ottla.env.network import DEFAULT_OPTIONS, Address, Channel, Peer, SocketOptions
from ottla.simulation.channel import SimulatedChannel
from ottla.simulation.loop import MICROSECOND, MILLISECOND, VirtualLoop
from ottla.simulation.process import PROCESS, Process
from ottla.simulation.trace import Trace

FIRST_FREE_PORT: Final = 49_152
LOCAL: Final = frozenset({"", "localhost", "127.0.0.1", "0.0.0.0", "::", "::1"})  # noqa: S104
NEVER_SLOW: Final = (0, 0)
TICK_NS: Final = 20 * MICROSECOND  # What arrives within one tick is served in one turn.


@dataclass(slots=True)
class LinkSettings:
    """How bytes travel between two hosts."""

    delay_ns_min: int = 40 * MICROSECOND
    delay_ns_mean: int = 200 * MICROSECOND  # On top of the least, exponentially.
    piece_bytes_max: int = 64 << 10  # How much one read gets at most.
    window_bytes: int = 256 << 10  # How much may be under way, unread.


class SimulatedNetwork:
    """The world between the hosts."""

    def __init__(self, loop: VirtualLoop, source: Random, trace: Trace) -> None:
        self.loop = loop
        self.random = source
        self.trace = trace
        self.link = LinkSettings()
        self.channels: list[SimulatedChannel] = []  # Every open end, in the order of opening.
        self._listening: dict[tuple[str, int], SimulatedListener] = {}
        self._clogged_until_ns: dict[str, int] = {}
        # From one host to another, in this direction only: until when, and how much slower.
        self._cut_until_ns: dict[tuple[str, str], int] = {}
        self._slow: dict[tuple[str, str], tuple[int, int]] = {}
        self._off: dict[str, list[SimulatedChannel]] = {}  # Hosts without power, and who waits.
        self._waiting: list[asyncio.Future[None]] = []  # For a host to be reached.
        self._next_port = FIRST_FREE_PORT
        self._next_number = 0

    def host(self, name: str) -> "SimulatedHost":
        """A host's network, as the process sees it that is running now."""
        return SimulatedHost(self, name, PROCESS.get())

    def clog(self, name: str, duration_ns: int) -> None:
        """Nothing from or to this host arrives for a while; then all does."""
        self.trace.note(f"clog {name} for {duration_ns} ns")
        self._clogged_until_ns[name] = self.loop.now_ns + duration_ns

    def cut(self, senders: Iterable[str], receivers: Iterable[str], duration_ns: int) -> None:
        """What the ones send to the others arrives when this is over, as TCP sends it again."""
        pairs = [(one, other) for one in senders for other in receivers if one != other]
        self.trace.note(f"cut {pairs} for {duration_ns} ns")
        for pair in pairs:
            self._cut_until_ns[pair] = self.loop.now_ns + duration_ns

    def slow_down(self, sender: str, receiver: str, delay_ns: int, duration_ns: int) -> None:
        """What one sends to the other takes about so much longer, for a while."""
        self.trace.note(f"slow {sender} to {receiver} by {delay_ns} ns for {duration_ns} ns")
        self._slow[sender, receiver] = (self.loop.now_ns + duration_ns, delay_ns)

    def heal(self) -> None:
        """What is sent from now on arrives."""
        self._clogged_until_ns.clear()
        self._cut_until_ns.clear()
        self._slow.clear()

    def power_off(self, name: str) -> None:
        """A machine goes dark: its connections are not closed, and nobody refuses new ones."""
        self.trace.note(f"{name} goes dark")
        ends = [channel for channel in self.channels if channel.host.name == name]
        self._off[name] = [end.other for end in ends]
        for end in ends:
            end.fall_silent()

    def power_on(self, name: str) -> None:
        """Whoever still talks to a connection of before is told that there is none."""
        for end in self._off.pop(name, ()):
            self.loop.after(self.random.randrange(200 * MILLISECOND), end._end)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _set(future)

    async def wait_reached(self, sender: str, receiver: str) -> None:
        """Until a word of the one has come to the other, and an answer back."""
        while True:
            future = self.loop.create_future()
            if receiver in self._off:
                self._waiting.append(future)
            else:
                arrival = self.arrival_ns(sender, receiver)
                arrival = max(arrival, self._cut_until_ns.get((receiver, sender), 0))
                self.loop.after(arrival - self.loop.now_ns, _set, future)
            await future
            if receiver not in self._off:
                return

    def reset_some(self, name: str, probability: float) -> int:
        """Break connections of a host, in the middle of whatever they carry."""
        count = 0
        for channel in [channel for channel in self.channels if channel.host.name == name]:
            if channel.is_open and self.random.random() < probability:
                self.trace.note(f"reset {channel.name}")
                channel.reset()
                count += 1
        return count

    def arrival_ns(self, sender: str, receiver: str) -> int:
        """When bytes that leave now are there."""
        now = self.loop.now_ns
        delay = self.link.delay_ns_min + int(self.random.expovariate(1.0) * self.link.delay_ns_mean)
        clogged = max(
            self._clogged_until_ns.get(sender, 0), self._clogged_until_ns.get(receiver, 0)
        )
        slow_until, slowness = self._slow.get((sender, receiver), NEVER_SLOW)
        if now < slow_until:
            delay += int(self.random.expovariate(1.0) * slowness)
        clogged = max(clogged, self._cut_until_ns.get((sender, receiver), 0))
        arrival = max(now, clogged) + delay
        return arrival - arrival % TICK_NS + TICK_NS

    def find(self, name: str, port: int) -> "SimulatedListener | None":
        return self._listening.get((name, port))

    def add_listener(self, listener: "SimulatedListener") -> None:
        key = (listener.host.name, listener.address.port)
        if key in self._listening:
            raise OSError(errno.EADDRINUSE, f"{listener.address} is in use")
        self._listening[key] = listener

    def remove_listener(self, listener: "SimulatedListener") -> None:
        self._listening.pop((listener.host.name, listener.address.port), None)

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port - 1

    def next_number(self) -> int:
        self._next_number += 1
        return self._next_number


class SimulatedHost:
    """The `Network` of one process on one host."""

    def __init__(self, network: SimulatedNetwork, name: str, process: Process | None) -> None:
        self.before_sending: Callable[[], None] = _nothing
        self.network = network
        self.name = name
        self.process = process
        self._listeners: list[SimulatedListener] = []
        self._unsent: list[SimulatedChannel] = []
        self._is_end_scheduled = False
        if process is not None:
            process.on_killed.append(self._killed)

    async def listen(
        self,
        host: str,
        port: int,
        accept: Callable[[Channel], Peer],
        _options: SocketOptions = DEFAULT_OPTIONS,
    ) -> "SimulatedListener":
        address = Address(self.name if host in LOCAL else host, port or self.network.free_port())
        listener = SimulatedListener(self, address, accept)
        self.network.add_listener(listener)
        self._listeners.append(listener)
        return listener

    async def connect(self, host: str, port: int, accept: Callable[[Channel], Peer]) -> Channel:
        network = self.network
        name = self.name if host in LOCAL else host
        await network.wait_reached(self.name, name)
        listener = network.find(name, port)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{name}:{port} refused")
        number = network.next_number()
        here = SimulatedChannel(self, Address(name, port), f"{number}:{self.name}>{name}")
        there = SimulatedChannel(
            listener.host, Address(self.name, network.free_port()), f"{number}:{name}>{self.name}"
        )
        here.other, there.other = there, here
        network.channels += [here, there]
        here.open(accept)
        listener.connected(there)
        return here

    def end_turn_soon(self) -> None:
        if not self._is_end_scheduled:
            self._is_end_scheduled = True
            self.network.loop.call_soon(self._end_turn)

    def has_unsent(self, channel: "SimulatedChannel") -> None:
        self._unsent.append(channel)
        self.end_turn_soon()

    def call(self, callback: Callable[..., object], *args: object) -> None:
        """Hand something to this host's process, in its own context; the dead hear nothing."""
        if self.process is None:  # What follows must not end with the process that called.
            Context().run(callback, *args)
        elif self.process.is_paused:
            self.process.call_on_resume(callback, *args)
        elif PROCESS.get() is self.process:
            callback(*args)
        elif self.process.is_alive:
            self.process.call(callback, *args)

    @property
    def is_alive(self) -> bool:
        return self.process is None or self.process.is_alive

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.is_paused

    def _end_turn(self) -> None:
        self._is_end_scheduled = False
        while True:
            self.before_sending()
            if not self._unsent:
                return
            channels, self._unsent = self._unsent, []
            for channel in channels:
                channel.drain()

    def _killed(self) -> None:
        """The kernel closes what a dead process had open."""
        for listener in self._listeners:
            self.network.remove_listener(listener)
        for channel in [channel for channel in self.network.channels if channel.host is self]:
            channel.vanish(within_ns=MILLISECOND)


class SimulatedListener:
    def __init__(
        self, host: SimulatedHost, address: Address, accept: Callable[[Channel], Peer]
    ) -> None:
        self.host = host
        self.address = address
        self._accept = accept
        self._backlog: list[SimulatedChannel] | None = []  # Those who came before `start`.

    def start(self) -> None:
        backlog, self._backlog = self._backlog or [], None
        for channel in backlog:
            channel.open(self._accept)

    def connected(self, channel: SimulatedChannel) -> None:
        if self._backlog is None:
            channel.open(self._accept)
        else:
            self._backlog.append(channel)

    def close(self) -> None:
        self.host.network.remove_listener(self)
        for channel in self._backlog or ():
            channel.vanish(within_ns=1)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _nothing() -> None:
    pass
