"""A network in virtual time: hosts, and streams of bytes between them with delays and faults.

Streams are as TCP's: in order, nothing twice, nothing lost but by the end of the connection. Bytes
arrive in pieces of any size, and only so many are under way that have not been read. The channels
above the sockets are the real ones (`ottla.env.channels`), with their turns and their guard.
"""

import asyncio
import errno
from collections.abc import Callable, Iterable
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Final

from ottla.env.channels import SocketChannel, SocketListener, Sockets, StreamSocket
from ottla.env.disk import File
from ottla.env.network import DEFAULT_OPTIONS, Address, Channel, Peer, SocketOptions
from ottla.simulation.world.loop import MICROSECOND, MILLISECOND, VirtualLoop
from ottla.simulation.world.process import PROCESS, Process
from ottla.simulation.world.selector import SimulatedSelector
from ottla.simulation.world.sockets import SimulatedListener, SimulatedSocket
from ottla.simulation.world.trace import Trace
from ottla.simulation.world.workers import SimulatedWorkers

FIRST_FREE_PORT: Final = 49_152
LOCAL: Final = frozenset({"", "localhost", "127.0.0.1", "0.0.0.0", "::", "::1"})  # noqa: S104
NEVER_SLOW: Final = (0, 0)
FILE_BYTES_PER_SEND: Final = 64 << 10
TICK_NS: Final = 20 * MICROSECOND  # What arrives within one tick is served in one turn.


@dataclass(slots=True)
class LinkSettings:
    """How bytes travel between two hosts."""

    delay_ns_min: int = 40 * MICROSECOND
    delay_ns_mean: int = 200 * MICROSECOND  # On top of the least, exponentially.
    piece_bytes_max: int = 64 << 10  # How much one read gets at most.
    window_bytes: int = 256 << 10  # How much may be under way, unread.
    short_probability: float = 0.1  # Of a read or a write to be a short one.
    again_probability: float = 0.01  # Of any call to answer that the socket is not ready.
    uncached_probability: float = 0.02  # Of a file's range to be read by a worker first.
    accept_failure_probability: float = 0.0  # Of a process without descriptors, for example.


class SimulatedNetwork:
    """The world between the hosts."""

    def __init__(self, loop: VirtualLoop, source: Random, trace: Trace) -> None:
        self.loop = loop
        self.random = source
        self.trace = trace
        self.link = LinkSettings()
        self.on_sending: Callable[[str], None] = _nothing  # A host sends what its turn wrote.
        self.sockets: list[SimulatedSocket] = []  # Every open end, in the order of opening.
        self._listening: dict[tuple[str, int], SimulatedListener] = {}
        self._clogged_until_ns: dict[str, int] = {}
        # From one host to another, in this direction only: until when, and how much slower.
        self._cut_until_ns: dict[tuple[str, str], int] = {}
        self._slow: dict[tuple[str, str], tuple[int, int]] = {}
        self._off: dict[str, list[SimulatedSocket]] = {}  # Hosts without power, and who waits.
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
        ends = [end for end in self.sockets if end.host.name == name]
        self._off[name] = [end.other for end in ends]
        for end in ends:
            end.fall_silent()

    def power_on(self, name: str) -> None:
        """Whoever still talks to a connection of before is told that there is none."""
        for end in self._off.pop(name, ()):
            self.loop.after(self.random.randrange(200 * MILLISECOND), end.break_off)
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
        for end in [end for end in self.sockets if end.host.name == name]:
            if self.random.random() < probability:
                self.trace.note(f"reset {end.name}")
                end.reset()
                count += 1
        return count

    def reset_all(self, name: str) -> None:
        """Break all connections of a host, also those that it has closed and its peers have not.

        Nothing that the host has sent arrives after this.
        """
        for end in [end for end in self.sockets if name in (end.host.name, end.other.host.name)]:
            end.break_off()

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
        _, port = listener.getsockname()
        if (listener.host.name, port) in self._listening:
            raise OSError(errno.EADDRINUSE, f"port {port} of {listener.host.name} is in use")
        self._listening[listener.host.name, port] = listener

    def remove_listener(self, listener: "SimulatedListener") -> None:
        self._listening.pop((listener.host.name, listener.getsockname()[1]), None)

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port - 1

    def next_number(self) -> int:
        self._next_number += 1
        return self._next_number


class SimulatedHost(Sockets):
    """The `Network` of one process on one host."""

    selector: SimulatedSelector

    def __init__(self, network: SimulatedNetwork, name: str, process: Process | None) -> None:
        super().__init__(network.loop, SimulatedSelector(), SimulatedWorkers(network.random))
        self.selector.on_ready = self._poll_soon
        self.network = network
        self.name = name
        self.process = process
        self._listeners: list[SimulatedListener] = []
        self._is_poll_due = False
        if process is not None:
            process.on_killed.append(self._killed)

    async def listen(
        self,
        host: str,
        port: int,
        accept: Callable[[Channel], Peer],
        _options: SocketOptions = DEFAULT_OPTIONS,
    ) -> SocketListener:
        address = Address(self.name if host in LOCAL else host, port or self.network.free_port())
        listener = SimulatedListener(self, address)
        self.network.add_listener(listener)
        self._listeners.append(listener)
        return SocketListener(self, listener, accept)

    async def connect(self, host: str, port: int, accept: Callable[[Channel], Peer]) -> Channel:
        network = self.network
        name = self.name if host in LOCAL else host
        await network.wait_reached(self.name, name)
        listener = network.find(name, port)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{name}:{port} refused")
        number = network.next_number()
        here = SimulatedSocket(self, Address(name, port), f"{number}:{self.name}>{name}")
        there = SimulatedSocket(
            listener.host, Address(self.name, network.free_port()), f"{number}:{name}>{self.name}"
        )
        here.other, there.other = there, here
        network.sockets += [here, there]
        listener.connected(there)
        return SocketChannel(self, here, accept)

    def send_file(self, to: StreamSocket, file: File, position: int, size: int) -> int:
        data = file.read(position, min(size, FILE_BYTES_PER_SEND))
        return to.send(data)

    def is_cached(self, _file: File, _position: int, _size: int) -> bool:
        return self.network.random.random() >= self.network.link.uncached_probability

    def peer_failed(self, remote: Address, error: Exception) -> None:
        """The guard keeps it from the process; a simulation is to fail of it nevertheless."""
        super().peer_failed(remote, error)
        message = f"a peer of {self.name} failed"
        self.network.loop.call_exception_handler({"message": message, "exception": error})

    def call(self, callback: Callable[..., object], *args: object) -> None:
        """Hand something to this host's process, in its own context; the dead hear nothing."""
        if self.process is None:  # What follows must not end with the process that called.
            Context().run(callback, *args)
        elif PROCESS.get() is self.process:
            callback(*args)
        elif self.process.is_paused:
            self.process.call_on_resume(callback, *args)
        elif self.process.is_alive:
            self.process.call(callback, *args)

    @property
    def is_alive(self) -> bool:
        return self.process is None or self.process.is_alive

    def _poll_soon(self) -> None:
        if not self._is_poll_due:
            self._is_poll_due = True
            self.network.loop.after(0, self._poll)

    def _poll(self) -> None:
        if self.process is not None and self.process.is_paused:
            self.process.call_on_resume(self._poll_now)
        elif self.is_alive:
            self.call(self._poll_now)

    def _poll_now(self) -> None:
        """One turn of the process: all sockets that are ready, then the end of the turn."""
        self._is_poll_due = False
        self.selector.select(0)
        if self.selector.is_poll_due:
            self._poll_soon()

    def _send_unsent(self) -> None:
        self.network.on_sending(self.name)
        super()._send_unsent()

    def _turn_failed(self, error: Exception) -> None:
        raise error

    def _killed(self) -> None:
        """The kernel closes what a dead process had open."""
        for listener in self._listeners:
            listener.close()
        for end in [end for end in self.network.sockets if end.host is self]:
            end.vanish(within_ns=MILLISECOND)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _nothing(*_: object) -> None:
    pass
