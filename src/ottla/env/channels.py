"""Channels over non-blocking sockets: read into the peer's own buffer, written once per turn.

Replies of one turn leave in one `send`; a file's bytes go from the page cache to the socket by
`sendfile`. A range that is not cached is read by a worker first, so that the loop never waits for
a disk. A connection that is not sending costs a socket and two small objects.

The guard: an exception that a peer raises ends at `Sockets.peer_failed`. It closes the connection
that raised it, is logged and counted, and disturbs no other connection. A failed assert is raised
again, since it ends the process; so does whatever `before_sending` raises, which is the process's
own work and no peer's.

The seam is below all of this: the same code runs over the kernel's sockets (`sockets.py`) and over
simulated ones (`ottla.simulation.world.sockets`).
"""

import asyncio
import errno
import logging
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from ottla.env.descriptors import RESERVE
from ottla.env.disk import File
from ottla.env.errnos import SHORT, UNREADABLE
from ottla.env.files import FileRange
from ottla.env.log_limit import LogLimit
from ottla.env.loop import AGAIN, READ, WRITE, Dispatching
from ottla.env.network import Address, Channel, Peer, Piece
from ottla.env.system import HAS_SENDFILE, MSG_MORE, is_cached, send_file
from ottla.env.workers import Workers
from ottla.model.errors import Damaged

logger = logging.getLogger(__name__)

ACCEPTS_PER_TURN_MAX = 64
ACCEPT_PAUSE_SECONDS = 0.1
PIECES_PER_SEND_MAX = 64
SEND_BYTES_PER_TURN_MAX = 4 << 20  # Then others get their turn.
# Of all channels at the end of a turn; a few milliseconds.
ALL_SEND_BYTES_PER_TURN_MAX = 8 << 20
RANGE_COPIED_BYTES_MAX = 32 << 10  # Below this a read and one sendmsg beat sendmsg + sendfile.
READ_AHEAD_BYTES = 1 << 20
# A read of so much is worth another look at who else has sent: of less the look costs too much, and
# more makes large writes by itself, which should come while it is in the CPU's cache.
GATHER_BYTES_MIN, GATHER_BYTES_MAX = 64 << 10, 128 << 10


class StreamSocket(Protocol):
    """A connected socket, as far as a channel uses it."""

    def fileno(self) -> int: ...
    def setblocking(self, flag: bool, /) -> None: ...
    def setsockopt(self, level: int, name: int, value: int, /) -> None: ...
    def getpeername(self) -> tuple[str, int]: ...
    def recv_into(self, buffer: memoryview, /) -> int: ...
    def send(self, data: bytes | bytearray | memoryview, flags: int = 0, /) -> int: ...
    def close(self) -> None: ...


class ListeningSocket(Protocol):
    """A listening, non-blocking socket."""

    def fileno(self) -> int: ...
    def getsockname(self) -> tuple[str, int]: ...
    def accept(self) -> tuple[StreamSocket, object]: ...
    def close(self) -> None: ...


class Sockets:
    """The channels of one process: their common turn, their guard, and reading ahead for them."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, selector: Dispatching, workers: Workers
    ) -> None:
        self.before_sending: Callable[[], None] = _nothing
        self.peer_failures = 0  # Exceptions that closed a connection.
        self.selector = selector
        self.workers = workers
        self.call_later = loop.call_later
        self._loop = loop
        self._unsent: list[SocketChannel] = []
        self._is_end_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._log_limit = LogLimit(loop.time)
        selector.after_dispatch = self._end_turn

    @property
    def clock(self) -> Callable[[], float]:
        return self.selector.clock

    def send_file(self, to: StreamSocket, file: File, position: int, size: int) -> int:
        """Send up to `size` bytes of a file; 0 if it ends before `position`."""
        return send_file(to, file, position, size)

    def is_cached(self, file: File, position: int, size: int) -> bool:
        return is_cached(file, position, size)

    def end_turn_soon(self) -> None:
        if not self.selector.is_dispatching:
            self._schedule_end()

    def has_unsent(self, channel: "SocketChannel") -> None:
        self._unsent.append(channel)
        self.end_turn_soon()

    def read_ahead(self, channel: "SocketChannel", piece: FileRange) -> None:
        task = self._loop.create_task(self._read_ahead(channel, piece))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read_ahead(self, channel: "SocketChannel", piece: FileRange) -> None:
        try:
            await self.workers.run(
                piece.file.read, piece.position, min(piece.size, READ_AHEAD_BYTES)
            )
        except OSError as error:
            channel.cannot_read(piece, error)
        except Exception as error:  # noqa: BLE001  The guard decides.
            channel.failed(error)
        else:
            channel.was_read_ahead()

    def peer_failed(self, remote: Address, error: Exception) -> None:
        if isinstance(error, AssertionError):
            raise error  # A bug in the code that keeps the data: the process ends.
        self.peer_failures += 1
        if self._log_limit.admits():
            more = self._log_limit.suppressed()
            logger.error("closed the connection with %s%s", remote, more, exc_info=error)

    def _schedule_end(self) -> None:
        if not self._is_end_scheduled:
            self._is_end_scheduled = True
            self._loop.call_soon(self._scheduled_end)

    def _scheduled_end(self) -> None:
        self._is_end_scheduled = False
        try:
            self._end_turn()
        except Exception as error:  # noqa: BLE001  asyncio would only log it.
            self._turn_failed(error)

    def _turn_failed(self, error: Exception) -> None:
        self.selector.failure = error  # The next poll raises it.

    def _end_turn(self) -> None:
        self.before_sending()
        if not self._unsent:
            return
        self._send_unsent()
        self.before_sending()
        if self._unsent:  # After everyone else has had their turn.
            self._schedule_end()

    def _send_unsent(self) -> None:
        channels, self._unsent = self._unsent, []
        left, sent_bytes = iter(channels), 0
        for channel in left:
            sent_bytes += channel.drain()
            if sent_bytes > ALL_SEND_BYTES_PER_TURN_MAX:
                self._unsent = [*left, *self._unsent]


class SocketListener:
    def __init__(
        self, network: Sockets, listener: ListeningSocket, accept: Callable[[Channel], Peer]
    ) -> None:
        self.address = Address(*listener.getsockname()[:2])
        self._network = network
        self._listener = listener
        self._accept = accept
        self._is_accepting = False

    def start(self) -> None:
        if self._listener.fileno() >= 0 and not self._is_accepting:
            self._is_accepting = True
            self._network.selector.register(self._listener, READ, self)

    def ready(self, _events: int) -> None:
        for _ in range(ACCEPTS_PER_TURN_MAX):
            if not self._is_accepting:  # Closed meanwhile, perhaps by a peer just accepted.
                return
            if not RESERVE.fill():
                self._pause()
                return
            try:
                accepted, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in SHORT:  # Any other error is of a connection that is gone.
                    self._pause()
                    return
                continue  # That connection is gone before it was accepted.
            accepted.setblocking(False)
            SocketChannel(self._network, accepted, self._accept)

    def close(self) -> None:
        self._stop()
        self._listener.close()

    def _pause(self) -> None:
        """Leave those who wait in the backlog for a moment. The listener stays ready, and would
        keep the loop busy."""
        self._stop()
        RESERVE.lend()
        self._network.call_later(ACCEPT_PAUSE_SECONDS, self.start)

    def _stop(self) -> None:
        if self._is_accepting:
            self._is_accepting = False
            self._network.selector.unregister(self._listener)


class SocketChannel:
    __slots__ = (
        "_again",
        "_events",
        "_is_dirty",
        "_is_reading_ahead",
        "_network",
        "_peer",
        "_pieces",
        "_skip_probe",
        "_socket",
        "remote",
    )

    def __init__(
        self, network: Sockets, connected: StreamSocket, accept: Callable[[Channel], Peer]
    ) -> None:
        self._network = network
        self._socket: StreamSocket | None = connected
        self._pieces: deque[Piece] = deque()
        self._is_dirty = self._is_reading_ahead = self._skip_probe = False
        self._events = 0
        self._again: Callable[[], None] = _nothing
        self._peer: Peer | None = None  # Until it is accepted.
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.remote = Address(*connected.getpeername()[:2])
        except OSError:  # It is gone already; the first read will say so.
            self.remote = Address("?", 0)
        try:
            self._peer = accept(self)
            self._watch(READ)  # Unless it was refused, which has closed it.
        except Exception as error:  # noqa: BLE001  The guard decides.
            self.failed(error)

    @property
    def unsent(self) -> int:
        return len(self._pieces)

    def ready(self, events: int) -> None:
        try:
            if events & READ and self._events & READ:
                self._receive()
            if events & WRITE and self._socket is not None:
                self._drain()
            if events & AGAIN and self._socket is not None:
                self._again()
        except Exception as error:  # noqa: BLE001  The guard decides.
            self.failed(error)

    def send(self, pieces: Sequence[Piece]) -> None:
        if self._socket is None:
            return
        self._pieces.extend(pieces)
        self._mark()

    def _mark(self) -> None:
        if not self._is_dirty:
            self._is_dirty = True
            self._network.has_unsent(self)

    def pause_reading(self) -> None:
        self._watch(self._events & ~READ)

    def resume_reading(self) -> None:
        self._watch(self._events | READ)

    def serve_again(self, serve: Callable[[], None]) -> None:
        if self._socket is not None:
            self._again = serve
            self._network.selector.serve_again(self)

    def close(self) -> None:
        if self._socket is None:
            return
        self._watch(0)
        self._socket.close()
        self._socket = None
        self._again = _nothing
        self._pieces.clear()
        if self._peer is not None:
            try:
                self._peer.closed()
            except Exception as error:  # noqa: BLE001  The guard decides.
                self._network.peer_failed(self.remote, error)

    def failed(self, error: Exception) -> None:
        """The peer, or this channel in its service, raised: only this connection ends."""
        self.close()
        self._network.peer_failed(self.remote, error)

    def cannot_read(self, piece: FileRange, error: OSError | Damaged) -> None:
        """The answer was begun, so it cannot say it: the connection ends, and the owner hears."""
        self.close()
        if piece.owner is not None:
            piece.owner.unreadable(error)

    def was_read_ahead(self) -> None:
        self._is_reading_ahead = False
        self._skip_probe = True
        self._mark()

    def drain(self) -> int:
        """Send what the kernel takes now, the rest when it has room; returns the bytes sent."""
        self._is_dirty = False
        try:
            return self._drain()
        except Exception as error:  # noqa: BLE001  The guard decides.
            self.failed(error)
            return 0

    def _receive(self) -> None:
        peer = self._peer
        try:
            count = self._socket.recv_into(peer.buffer())  # type: ignore[union-attr]
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if count == 0:
            self.close()
            return
        peer.received(count)  # type: ignore[union-attr]
        if GATHER_BYTES_MIN <= count <= GATHER_BYTES_MAX:
            self._network.selector.is_gathering = True

    def _drain(self) -> int:
        if self._socket is None or self._is_reading_ahead:
            return 0
        pieces, sent_bytes = self._pieces, 0
        try:
            while pieces and sent_bytes < SEND_BYTES_PER_TURN_MAX and not self._is_reading_ahead:
                head = pieces[0]
                sent_bytes += (
                    self._send_file(head) if type(head) is FileRange else self._send_buffers()
                )
        except BlockingIOError:
            pass
        except (OSError, Damaged) as error:
            if type(head) is FileRange and _is_of_file(error):
                self.cannot_read(head, error)
            else:
                self.close()
            return 0
        if pieces and not self._is_reading_ahead:
            self._watch(self._events | WRITE)
            return sent_bytes
        if self._events & WRITE:
            self._watch(self._events & ~WRITE)
        if not pieces:
            self._peer.sent()  # type: ignore[union-attr]
        return sent_bytes

    def _send_buffers(self) -> int:
        pieces = self._pieces
        if len(pieces) == 1:
            data: bytes | bytearray | memoryview = pieces[0]  # type: ignore[assignment]
            sent = self._socket.send(data)  # type: ignore[union-attr]
            if sent == len(data):
                pieces.clear()
            else:
                pieces[0] = memoryview(data)[sent:]
            return sent
        buffers: list[bytes | bytearray | memoryview] = []
        flags = 0
        for piece in pieces:
            if type(piece) is FileRange:
                flags = MSG_MORE
                break
            buffers.append(piece)  # type: ignore[arg-type]
            if len(buffers) == PIECES_PER_SEND_MAX:
                break
        # Answers are small: to join them costs less than to describe each to the kernel.
        data = b"".join(buffers)
        sent = self._socket.send(data, flags)  # type: ignore[union-attr]
        if len(buffers) == len(pieces):
            pieces.clear()
        else:
            for _ in buffers:
                pieces.popleft()
        if sent < len(data):
            pieces.appendleft(memoryview(data)[sent:])
        return sent

    def _send_file(self, piece: FileRange) -> int:
        """Send some of a range. Raises Damaged if its bytes are not in the file any more.

        A leader that was deposed truncates its log while ranges of it wait here. Its file is then
        too short, or has other batches at that place: an OSError ends the connection alone.
        """
        file, position = piece.file, piece.position
        if file.truncations != piece.truncations:
            raise OSError(errno.ECANCELED, f"{file.path} was truncated before it was sent")
        size = min(piece.size, READ_AHEAD_BYTES)
        if not self._skip_probe and not self._network.is_cached(file, position, size):
            self._is_reading_ahead = True
            self._network.read_ahead(self, piece)
            return 0
        self._skip_probe = False
        if piece.size <= RANGE_COPIED_BYTES_MAX or not HAS_SENDFILE:
            data = file.read(position, size)
            if len(data) < size:
                raise _shorter(file, position + len(data))
            self._advance(piece, size)
            self._pieces.appendleft(data)
            return self._send_buffers()
        sent = self._network.send_file(self._socket, file, position, size)  # type: ignore[arg-type]
        if sent == 0:
            raise _shorter(file, position)
        self._advance(piece, sent)
        return sent

    def _advance(self, piece: FileRange, count: int) -> None:
        """The first piece has left, or so much of it."""
        if count == piece.size:
            self._pieces.popleft()
        else:
            self._pieces[0] = piece.behind(count)

    def _watch(self, events: int) -> None:
        if events == self._events or self._socket is None:
            return
        selector = self._network.selector
        if not self._events:
            selector.register(self._socket, events, self)
        elif not events:
            selector.unregister(self._socket)
        else:
            selector.modify(self._socket, events, self)
        self._events = events


def _shorter(file: File, position: int) -> Damaged:
    return Damaged(file.path, position, "it is shorter than it was")


def _is_of_file(error: OSError | Damaged) -> bool:
    """Whether it is the file that cannot be read, and not the socket that cannot be written."""
    return isinstance(error, Damaged) or error.errno in UNREADABLE


def _nothing() -> None:
    pass
