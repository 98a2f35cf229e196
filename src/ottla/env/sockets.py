"""The kernel's sockets as a network: non-blocking, read into the peer's own buffer.

Replies of one turn leave in one `sendmsg`; a file's bytes go from the page cache to the socket by
`sendfile`. A range that is not cached is read by a worker first, so that the loop never waits for
a disk. A connection that is not sending costs a socket and two small objects.
"""

import asyncio
import errno
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence

from ottla.env.files import FileRange
from ottla.env.loop import READ, WRITE, DispatchLoop
from ottla.env.network import DEFAULT_OPTIONS, Address, Channel, Peer, Piece, SocketOptions
from ottla.env.system import HAS_SENDFILE, MSG_MORE, is_cached
from ottla.env.workers import Workers

ACCEPTS_PER_TURN_MAX = 64
ACCEPT_PAUSE_SECONDS = 0.1
PIECES_PER_SEND_MAX = 64
SEND_BYTES_PER_TURN_MAX = 4 << 20  # Then others get their turn.
RANGE_COPIED_BYTES_MAX = 32 << 10  # Below this a read and one sendmsg beat sendmsg + sendfile.
READ_AHEAD_BYTES = 1 << 20
# A read of so much is worth another look at who else has sent: of less the look costs too much, and
# more makes large writes by itself, which should come while it is in the CPU's cache.
GATHER_BYTES_MIN, GATHER_BYTES_MAX = 64 << 10, 128 << 10


class SocketNetwork:
    def __init__(self, loop: DispatchLoop, workers: Workers) -> None:
        self.before_sending: Callable[[], None] = _nothing
        self.selector = loop.selector
        self.workers = workers
        self._loop = loop
        self._unsent: list[SocketChannel] = []
        self._is_end_scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.call_later = loop.call_later
        loop.selector.after_dispatch = self._end_turn

    def end_turn_soon(self) -> None:
        if not self.selector.is_dispatching:
            self._schedule_end()

    async def listen(
        self,
        host: str,
        port: int,
        accept: Callable[[Channel], Peer],
        options: SocketOptions = DEFAULT_OPTIONS,
    ) -> "SocketListener":
        resolved = await self._loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = sorted(resolved)[-1 if not host else 0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setblocking(False)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # An empty host means every interface of both families; a named one is its own.
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(bool(host)))
            # Before it listens: accepted sockets inherit their buffers.
            if options.receive_buffer_bytes > 0:
                listener.setsockopt(
                    socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes
                )
            if options.send_buffer_bytes > 0:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)
            listener.bind(address)
            listener.listen(options.backlog)
        except OSError:
            listener.close()
            raise
        return SocketListener(self, listener, accept)

    async def connect(self, host: str, port: int, accept: Callable[[Channel], Peer]) -> Channel:
        resolved = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failure: OSError | None = None
        for family, kind, protocol, _, address in resolved:
            connecting = socket.socket(family, kind, protocol)
            connecting.setblocking(False)
            try:
                await self._loop.sock_connect(connecting, address)
            except BaseException as error:
                connecting.close()
                if not isinstance(error, OSError):
                    raise
                failure = error
            else:
                return SocketChannel(self, connecting, accept)
        raise failure or OSError(errno.EADDRNOTAVAIL, f"{host} has no address")

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
        except OSError:
            channel.close()
        else:
            channel.was_read_ahead()

    def _schedule_end(self) -> None:
        if not self._is_end_scheduled:
            self._is_end_scheduled = True
            self._loop.call_soon(self._scheduled_end)

    def _scheduled_end(self) -> None:
        self._is_end_scheduled = False
        self._end_turn()

    def _end_turn(self) -> None:
        self.before_sending()
        if not self._unsent:
            return
        channels, self._unsent = self._unsent, []
        for channel in channels:
            channel.drain()  # Which may let a muted peer serve more, and stage more.
        self.before_sending()
        if self._unsent:  # After everyone else has had their turn.
            self._schedule_end()


class SocketListener:
    def __init__(
        self, network: SocketNetwork, listener: socket.socket, accept: Callable[[Channel], Peer]
    ) -> None:
        self.address = Address(*listener.getsockname()[:2])
        self._network = network
        self._listener = listener
        self._accept = accept

    def start(self) -> None:
        if self._listener.fileno() >= 0:
            self._network.selector.register(self._listener, READ, self)

    def ready(self, _events: int) -> None:
        for _ in range(ACCEPTS_PER_TURN_MAX):
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError:
                # Out of descriptors: those who wait in the backlog are taken later. Until then the
                # listener stays ready, and would keep the loop busy.
                self._network.selector.unregister(self._listener)
                self._network.call_later(ACCEPT_PAUSE_SECONDS, self.start)
                return
            accepted.setblocking(False)
            SocketChannel(self._network, accepted, self._accept)

    def close(self) -> None:
        if self._listener.fileno() in self._network.selector.get_map():
            self._network.selector.unregister(self._listener)
        self._listener.close()


class SocketChannel:
    __slots__ = (
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
        self, network: SocketNetwork, connected: socket.socket, accept: Callable[[Channel], Peer]
    ) -> None:
        self._network = network
        self._socket: socket.socket | None = connected
        self._pieces: deque[Piece] = deque()
        self._is_dirty = self._is_reading_ahead = self._skip_probe = False
        self._events = 0
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.remote = Address(*connected.getpeername()[:2])
        except OSError:  # It is gone already; the first read will say so.
            self.remote = Address("?", 0)
        self._peer: Peer = accept(self)
        self._watch(READ)

    @property
    def unsent(self) -> int:
        return len(self._pieces)

    def ready(self, events: int) -> None:
        if events & READ and self._events & READ:
            try:
                count = self._socket.recv_into(self._peer.buffer())  # type: ignore[union-attr]
            except BlockingIOError:
                count = -1
            except OSError:
                count = 0
            if count > 0:
                self._peer.received(count)
                if GATHER_BYTES_MIN <= count <= GATHER_BYTES_MAX:
                    self._network.selector.is_gathering = True
            elif count == 0:
                self.close()
        if events & WRITE and self._socket is not None:
            self.drain()

    def send(self, pieces: Sequence[Piece]) -> None:
        if self._socket is None:
            return
        self._pieces.extend(pieces)
        if not self._is_dirty:
            self._is_dirty = True
            self._network.has_unsent(self)

    def pause_reading(self) -> None:
        self._watch(self._events & ~READ)

    def resume_reading(self) -> None:
        self._watch(self._events | READ)

    def close(self) -> None:
        if self._socket is None:
            return
        self._watch(0)
        self._socket.close()
        self._socket = None
        self._pieces.clear()
        if hasattr(self, "_peer"):  # Else it is refused while it is being accepted.
            self._peer.closed()

    def was_read_ahead(self) -> None:
        self._is_reading_ahead = False
        self._skip_probe = True
        self.drain()

    def drain(self) -> None:
        """Send what the kernel takes now; the rest when it says that there is room."""
        self._is_dirty = False
        if self._socket is None or self._is_reading_ahead:
            return
        pieces, sent_bytes = self._pieces, 0
        try:
            while pieces and sent_bytes < SEND_BYTES_PER_TURN_MAX and not self._is_reading_ahead:
                head = pieces[0]
                sent_bytes += (
                    self._send_file(head) if type(head) is FileRange else self._send_buffers()
                )
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if pieces and not self._is_reading_ahead:
            self._watch(self._events | WRITE)
            return
        if self._events & WRITE:
            self._watch(self._events & ~WRITE)
        if not pieces:
            self._peer.sent()

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
        file, position, size = piece.file, piece.position, piece.size
        if not self._skip_probe and not is_cached(
            file.fileno(), position, min(size, READ_AHEAD_BYTES)
        ):
            self._is_reading_ahead = True
            self._network.read_ahead(self, piece)
            return 0
        self._skip_probe = False
        if size <= RANGE_COPIED_BYTES_MAX or not HAS_SENDFILE:
            data = file.read(position, min(size, READ_AHEAD_BYTES))
            self._pieces[0] = data
            if len(data) < size:
                rest = FileRange(file, position + len(data), size - len(data))
                self._pieces.insert(1, rest)
            return self._send_buffers()
        sent = os.sendfile(
            self._socket.fileno(),  # type: ignore[union-attr]
            file.fileno(),
            position,
            min(size, READ_AHEAD_BYTES),
        )
        if sent == 0:
            raise OSError(errno.EIO, "the file is shorter than its index says")
        if sent == size:
            self._pieces.popleft()
        else:
            self._pieces[0] = FileRange(file, position + sent, size - sent)
        return sent

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


def _nothing() -> None:
    pass
