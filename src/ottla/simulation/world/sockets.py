"""Simulated sockets: the kernel's side of a stream, below the channels that brokers really use.

They answer as non-blocking sockets do: with fewer bytes than asked for, with BlockingIOError at any
moment, with an error once the connection was reset. What a socket may do now is polled by
`SimulatedSelector`. The bytes travel through `SimulatedNetwork` in virtual time.
"""

import errno
from collections import deque
from typing import TYPE_CHECKING

from ottla.env.loop import READ, WRITE
from ottla.env.network import Address

if TYPE_CHECKING:
    from ottla.simulation.world.network import SimulatedHost


class SimulatedSocket:
    """One end of a stream: what has arrived here, and how much of what it sent is not read yet."""

    other: "SimulatedSocket"

    def __init__(self, host: "SimulatedHost", remote: Address, name: str) -> None:
        self.host = host
        self.name = name
        self._remote = remote
        self._descriptor = host.network.next_number()
        self._is_open = True
        self._is_reset = False
        self._is_silent = False  # Its machine has no power: not even a reset comes from here.
        self._under_way = 0  # Bytes that left here and were not read there.
        self._last_arrival_ns = 0
        self._coming: deque[bytes] = deque()  # Under way; a heap of timers would lose their order.
        self._arrived = bytearray()  # Not read yet.
        self._has_ended = False  # The other side's last byte has arrived.
        self._epoch = 0  # Grows when what is under way to here is lost.

    # As the process sees it.

    def fileno(self) -> int:
        return self._descriptor if self._is_open else -1

    def setblocking(self, flag: bool) -> None:
        assert not flag, "a loop has non-blocking sockets"

    def setsockopt(self, _level: int, _name: int, _value: int) -> None:
        self._check()

    def getpeername(self) -> tuple[str, int]:
        if self._is_reset:  # It vanished before anybody asked who it was.
            raise OSError(errno.ENOTCONN, "not connected")
        return self._remote

    def recv_into(self, buffer: memoryview) -> int:
        self._check()
        if not self._arrived:
            if self._has_ended:
                return 0
            raise BlockingIOError(errno.EAGAIN, "nothing has arrived")
        network = self.host.network
        limit = min(len(buffer), network.link.piece_bytes_max)
        count = self._some(min(len(self._arrived), limit))
        data = bytes(self._arrived[:count])
        del self._arrived[:count]
        buffer[:count] = data
        network.trace.note(f"{self.name} receives {count}", data)
        self.other._was_read(count)
        return count

    def send(self, data: bytes | bytearray | memoryview, _flags: int = 0) -> int:
        self._check()
        if len(data) == 0:
            return 0
        room = self.host.network.link.window_bytes - self._under_way
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "too much is under way")
        count = self._some(min(len(data), room))
        self._under_way += count
        self._schedule(bytes(memoryview(data)[:count]))
        return count

    def close(self) -> None:
        """What is under way still arrives, and then the end."""
        if self._is_open:
            self._forget()
            self._send_end(0)

    # As the network sees it.

    def ready_events(self) -> int:
        """What a poll would say of it."""
        if self._is_reset:
            return READ | WRITE
        readable = READ if self._arrived or self._has_ended else 0
        window = self.host.network.link.window_bytes
        # As Linux: little room is not worth a wake-up.
        return readable | (WRITE if self._under_way * 3 <= window * 2 else 0)

    def reset(self) -> None:
        """The connection breaks: both sides lose what is under way to them."""
        for end in (self, self.other):
            end.break_off()

    def break_off(self) -> None:
        """This side learns that there is no connection any more."""
        if self._is_open:
            self.host.network.trace.note(f"{self.name} is reset")
            self._epoch += 1
            self._coming.clear()
            self._arrived.clear()
            self._is_reset = True
            self.host.selector.changed(self)

    def vanish(self, within_ns: int) -> None:
        """This side's process is gone; the other side hears of it after a while."""
        if self._is_open:
            self._forget()
            self._send_end(self.host.network.random.randrange(within_ns))

    def fall_silent(self) -> None:
        """This side's machine is without power: nobody tells the other side."""
        if self._is_open:
            self._is_silent = True
            self._forget()

    def _check(self) -> None:
        if not self._is_open:
            raise OSError(errno.EBADF, "the socket is closed")
        if self._is_reset:
            raise ConnectionResetError(errno.ECONNRESET, "the connection was reset")
        network = self.host.network
        if network.random.random() < network.link.again_probability:
            raise BlockingIOError(errno.EAGAIN, "not now")

    def _some(self, count: int) -> int:
        """So many bytes, or sometimes fewer."""
        source = self.host.network.random
        if count > 1 and source.random() < self.host.network.link.short_probability:
            return source.randrange(1, count)
        return count

    def _send_end(self, extra_ns: int) -> None:
        self._last_arrival_ns += extra_ns
        self._schedule(b"")

    def _schedule(self, data: bytes) -> None:
        network = self.host.network
        arrival = network.arrival_ns(self.host.name, self.other.host.name)
        self._last_arrival_ns = max(self._last_arrival_ns, arrival)
        delay = self._last_arrival_ns - network.loop.now_ns
        self.other._coming.append(data)
        network.loop.after(delay, self.other._arrive, self.other._epoch)

    def _arrive(self, epoch: int) -> None:
        """The next bytes are here, or, if there are none, the end of the stream."""
        if epoch != self._epoch:
            return
        data = self._coming.popleft()
        if not self._is_open:
            if data and not self._is_silent:
                self.other.break_off()  # As a kernel answers for a socket that is closed.
        elif data:
            self._arrived += data
            self.host.selector.changed(self)
        else:
            self._has_ended = True
            self.host.selector.changed(self)

    def _was_read(self, count: int) -> None:
        self._under_way -= count
        self.host.selector.changed(self)

    def _forget(self) -> None:
        self._is_open = False
        self._arrived.clear()
        self.host.network.sockets.remove(self)


class SimulatedListener:
    """A listening socket: connections wait here until they are accepted."""

    def __init__(self, host: "SimulatedHost", address: Address) -> None:
        self.host = host
        self._address = address
        self._descriptor = host.network.next_number()
        self._is_open = True
        self._backlog: deque[SimulatedSocket] = deque()

    def fileno(self) -> int:
        return self._descriptor if self._is_open else -1

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def accept(self) -> tuple[SimulatedSocket, object]:
        link, source = self.host.network.link, self.host.network.random
        if link.accept_failure_probability > source.random():
            code = source.choice((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ECONNABORTED))
            raise OSError(code, "accept fails")
        if not self._backlog:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        accepted = self._backlog.popleft()
        return accepted, accepted._remote

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self.host.network.remove_listener(self)
            for waiting in self._backlog:
                waiting.vanish(within_ns=1)

    def ready_events(self) -> int:
        return READ if self._backlog else 0

    def connected(self, there: SimulatedSocket) -> None:
        self._backlog.append(there)
        self.host.selector.changed(self)
