"""One end of a simulated stream: what it has sent, what has arrived, and how it ends."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.env.files import FileRange
from ottla.env.network import Address, Channel, Peer, Piece

if TYPE_CHECKING:
    from ottla.simulation.network import SimulatedHost

FILE_BYTES_PER_READ = 64 << 10


class SimulatedChannel:
    other: "SimulatedChannel"
    _peer: Peer

    def __init__(self, host: "SimulatedHost", remote: Address, name: str) -> None:
        self.host = host
        self.remote = remote
        self.name = name
        self.is_open = True
        self._pieces: deque[Piece] = deque()
        self._is_dirty = False
        self._is_paused = True  # Until it is opened.
        self._under_way = 0  # Bytes that left here and were not read there.
        self._last_arrival_ns = 0
        self._coming: deque[bytes] = deque()  # Under way; a heap of timers would lose their order.
        self._arrived: deque[bytes] = deque()  # Where the kernel keeps what was not read.
        self._has_ended = False  # The other side's last byte has arrived.
        self._is_reading = False
        self._epoch = 0  # Grows when what is under way to here is lost.

    def open(self, accept: Callable[[Channel], Peer]) -> None:
        """The process of this end takes it over; what has arrived meanwhile is read."""

        def take_over() -> None:
            if self.is_open:  # Else it broke while this process was paused.
                self._peer = accept(self)

        self._is_paused = False
        self.host.call(take_over)
        self._read_soon()

    @property
    def unsent(self) -> int:
        return len(self._pieces)

    def send(self, pieces: Sequence[Piece]) -> None:
        if not self.is_open:
            return
        self._pieces.extend(pieces)
        self._mark()

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._read_soon()

    def close(self) -> None:
        """This side's process closes: what is under way still arrives, and then the end."""
        if self.is_open:
            self._forget()
            self._send_end(0)
            if hasattr(self, "_peer"):  # Else it is refused while it is being accepted.
                self._peer.closed()

    def reset(self) -> None:
        """The connection breaks: both sides lose what is under way to them."""
        for end in (self, self.other):
            end._epoch += 1
            end._coming.clear()
            end._arrived.clear()
            end.host.network.loop.after(0, end._end)

    def vanish(self, within_ns: int) -> None:
        """This side's process is gone; the other side hears of it after a while."""
        if self.is_open:
            self._forget()
            self._send_end(self.host.network.random.randrange(within_ns))

    def fall_silent(self) -> None:
        """This side's machine is without power: nobody tells the other side."""
        if self.is_open:
            self._forget()

    def drain(self) -> None:
        """Send as much as may be under way; the rest when the other side has read."""
        self._is_dirty = False
        if not self.is_open:
            return
        window = self.host.network.link.window_bytes
        try:
            while self._pieces and self._under_way < window:
                self._transmit(self._next_bytes(window - self._under_way))
        except OSError:
            self.close()
            return
        if not self._pieces:
            self._peer.sent()

    def _next_bytes(self, limit: int) -> bytes:
        piece = self._pieces.popleft()
        if isinstance(piece, FileRange):
            size = min(piece.size, limit, FILE_BYTES_PER_READ)
            data = piece.file.read(piece.position, size)
            if len(data) < size:
                raise OSError("the file is shorter than its index says")
            if size < piece.size:
                rest = FileRange(piece.file, piece.position + size, piece.size - size)
                self._pieces.appendleft(rest)
            return data
        if len(piece) > limit:
            self._pieces.appendleft(memoryview(piece)[limit:])
            piece = memoryview(piece)[:limit]
        return bytes(piece)

    def _transmit(self, data: bytes) -> None:
        self._under_way += len(data)
        self._schedule(data)

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
        if not self.is_open or epoch != self._epoch:
            return
        data = self._coming.popleft()
        if data:
            self._arrived.append(data)
        else:
            self._has_ended = True
        self._read()

    def _read_soon(self) -> None:
        if not self._is_reading and (self._arrived or self._has_ended):
            self._is_reading = True
            self.host.network.loop.after(0, self._read)

    def _read(self) -> None:
        """One read, as an event loop does it for each socket of a turn; perhaps a short one."""
        if self.host.is_paused:
            self._is_reading = True
            self.host.call(self._read)
            return
        self._is_reading = False
        if not self.is_open or self._is_paused or not self.host.is_alive:
            return
        if self._arrived:
            self.host.call(self._receive)
            self._read_soon()
        elif self._has_ended:
            self._end()

    def _receive(self) -> None:
        network = self.host.network
        buffer = self._peer.buffer()
        data = self._arrived.popleft()
        limit = min(len(buffer), network.link.piece_bytes_max)
        if len(data) > 1 and network.random.random() < 0.1:
            limit = min(limit, network.random.randrange(1, len(data)))
        if len(data) > limit:
            self._arrived.appendleft(data[limit:])
            data = data[:limit]
        buffer[: len(data)] = data
        network.trace.note(f"{self.name} receives {len(data)}", data)
        self.other._was_read(len(data))
        self._peer.received(len(data))
        self.host.end_turn_soon()

    def _was_read(self, count: int) -> None:
        self._under_way -= count
        if self._pieces and self.is_open:
            self.host.call(self._mark)

    def _mark(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self.host.has_unsent(self)

    def _end(self) -> None:
        """The other side, or the network, has ended it."""
        if self.is_open:
            self.host.network.trace.note(f"{self.name} ends")
            self._forget()
            self._send_end(0)
            if hasattr(self, "_peer"):
                self.host.call(self._peer.closed)

    def _forget(self) -> None:
        self.is_open = False
        self._pieces.clear()
        self._coming.clear()
        self._arrived.clear()
        self.host.network.channels.remove(self)
