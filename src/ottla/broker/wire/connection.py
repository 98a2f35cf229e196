"""A client's connection without any I/O: bytes in, frames to dispatch, replies out in order.

Whole frames are served when they arrive, for a slice of the loop turn; the channel calls again for
the rest, after other connections. Requests of one connection do not wait for each other's answers,
but their replies leave in the order of the requests. Reading stops (the connection is muted) while
the peer does not read its replies, while there is no memory for its unfinished request, and while a
request holds back the ones behind it. Frames left when that ends are served in a later loop turn,
never in the middle of the flush or the reply that ended it.

An exception raised by a request, or by a callback of the connection's end, goes to `failed` and no
further.
"""

from collections import deque
from collections.abc import Callable, Sequence
from mmap import mmap
from struct import Struct
from typing import Any

from ottla.broker.wire.deciders import Deciders
from ottla.broker.wire.memory import (
    FREE_BYTES,
    LARGE_BYTES,
    READ_BYTES_MAX,
    SHARED_BYTES,
    RequestMemory,
)
from ottla.env.network import Channel, Piece
from ottla.model.principal import ANONYMOUS, Origin
from ottla.model.types import Monotonic

REPLIES_WAITING_MAX = 256
QUEUED_BYTES_MAX = 1 << 20
# Of a loop turn, for a connection with several requests; then other connections are served.
SLICE_SECONDS = 0.002
LARGE_READ_BYTES_MAX = 1 << 20

_INT32 = Struct(">i")


class Place:
    """One place in the order of a connection's answers, filled now or later."""

    __slots__ = ("connection", "pieces")

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.pieces: Sequence[Piece] | None = None

    def complete(self, pieces: Sequence[Piece]) -> None:
        """Give whole frames, their sizes and headers included; nothing at all for acks=0."""
        assert self.pieces is None, "a request is answered once"
        self.pieces = pieces
        self.connection.replied(self)


class Reply(Place):
    """One request's place, and its context: every handler is given it beside the request."""

    __slots__ = ("client_id", "correlation_id", "deciders", "version")

    def __init__(
        self,
        connection: "Connection",
        correlation_id: int,
        version: int,
        client_id: str,
        deciders: Deciders,
    ) -> None:
        self.connection = connection
        self.pieces = None
        self.correlation_id = correlation_id
        self.version = version
        self.client_id = client_id
        self.deciders = deciders

    @property
    def origin(self) -> Origin:
        """The client on whose behalf the request is."""
        connection = self.connection
        return Origin(connection.principal, self.client_id, connection.remote.host)

    async def submit(self, request: object) -> Any:  # noqa: ANN401
        """The active controller's response, on behalf of the same client."""
        return await self.deciders.submit(request, self.origin)

    def fail(self, error: Exception) -> None:
        """The response cannot be encoded: close the connection."""
        self.connection.fail(error)


# Serves the request between two positions in a buffer, and perhaps some that follow it, up to a
# third; returns where the next one begins. A request that has to wait for the time it takes is not
# served, and its connection is held: the position of its size is returned, and it is served again
# after `release`.
Serve = Callable[["Connection", memoryview, int, int, int], int]
# Closes the connection, since serving it raised. Raises again an error that must end the process.
Failed = Callable[["Connection", Exception], None]


class Connection:
    __slots__ = (
        "_channel",
        "_clock",
        "_failed",
        "_filled",
        "_held_bytes",
        "_holds",
        "_is_muted",
        "_large",
        "_large_size",
        "_memory",
        "_queued_bytes",
        "_serve",
        "_tail",
        "_waits_for_memory",
        "frame_bytes_max",
        "idle_since",
        "is_closed",
        "is_paid",
        "listener",
        "on_closed",
        "principal",
        "remote",
        "replies",
        "was_active",
    )

    def __init__(
        self,
        channel: Channel,
        listener: str,
        serve: Serve,
        failed: Failed,
        memory: RequestMemory,
        frame_bytes_max: int,
        clock: Callable[[], float],
    ) -> None:
        self.listener = listener
        self.remote = channel.remote
        self.principal = ANONYMOUS
        self.is_closed = False
        self.was_active = True  # Since someone last looked: cheaper than a time per request.
        self.idle_since = Monotonic(0)
        self.on_closed: list[Callable[[], None]] = []
        self._channel = channel
        self._serve = serve
        self._failed = failed
        self._memory = memory
        self._clock = clock
        self.frame_bytes_max = frame_bytes_max
        self.replies: deque[Place] = deque()
        self._queued_bytes = 0
        self._tail = bytearray()  # The beginning of a frame, or whole frames while we are muted.
        self._large: mmap | None = None
        self._large_size = self._filled = 0
        self._held_bytes = 0  # Of the tail, counted in the memory of all connections.
        self._is_muted = self._waits_for_memory = False
        self._holds = 0  # Requests that no later one may overtake.
        self.is_paid = False  # The next request has waited for the time that it takes.

    def buffer(self) -> memoryview:
        if self._large is not None:
            end = min(self._filled + LARGE_READ_BYTES_MAX, self._large_size)
            return memoryview(self._large)[self._filled : end]
        memory = self._memory
        if memory.place > SHARED_BYTES - READ_BYTES_MAX:
            memory.flush()
        start = memory.place
        end = start + READ_BYTES_MAX
        if kept := len(self._tail):
            memory.shared[start : start + kept] = self._tail
        if memory.is_exhausted:
            end = start + kept + FREE_BYTES
        return memory.shared[start + kept : end]

    def received(self, count: int) -> None:
        self.was_active = True
        if self._large is not None:
            self._filled += count
            is_complete = self._is_large_complete()
            if is_complete:
                self._serve_large(self._large)
            if self._large is not None and not self._memory.hold(self, count) and not is_complete:
                self._wait_for_memory()
            return
        memory = self._memory
        start, end = memory.place, memory.place + count
        if self._tail:
            end += len(self._tail)
            self._tail = bytearray()
        memory.place = end
        self._serve_all(memory.shared, start, end)

    def replied(self, reply: Place) -> None:
        replies = self.replies
        if self.is_closed or replies[0] is not reply:
            return
        while replies and replies[0].pieces is not None:
            pieces = replies.popleft().pieces
            if pieces:
                for piece in pieces:
                    if type(piece) is bytes:
                        self._queued_bytes += len(piece)
                self._channel.send(pieces)
        if self._is_muted:
            self._unmute()

    def expect(self, reply: Place) -> None:
        """Keep a place in the order of answers."""
        self.replies.append(reply)

    def sent(self) -> None:
        self._queued_bytes = 0
        if self._is_muted:
            self._unmute()

    def hold(self) -> None:
        """Serve no further request before `release`: the present one decides their order."""
        self._holds += 1
        self._mute()

    def release(self) -> None:
        self._holds -= 1
        self._unmute()

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is still to come: such a connection is not idle."""
        return bool(self.replies)

    def close(self) -> None:
        self._channel.close()

    def fail(self, error: Exception) -> None:
        """Serving it raised: close it, as the guard of `_serve_all` does."""
        self._failed(self, error)

    def closed(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.replies.clear()
        self._tail = bytearray()
        self._memory.release(self)
        if self._large is not None:
            large, self._large = self._large, None
            self._memory.give_back(large)
        for callback in list(self.on_closed):  # Each may take itself off the list.
            try:
                callback()
            except Exception as error:  # noqa: BLE001  The others are called all the same.
                self._failed(self, error)

    def _serve_all(self, view: memoryview, position: int, end: int) -> None:
        """Serve the whole frames between two positions of a buffer and keep the rest."""
        frame_bytes_max, clock = self.frame_bytes_max, self._clock
        start, size, slice_end = position, 0, 0.0
        while end - position >= 4:
            size = _INT32.unpack_from(view, position)[0]
            if not 0 < size <= frame_bytes_max:
                self.close()
                return
            frame_end = position + 4 + size
            if frame_end > end:
                break
            if (  # `_is_congested`, in place, since it is asked for every frame; the slice is over.
                self._queued_bytes > QUEUED_BYTES_MAX
                or len(self.replies) > REPLIES_WAITING_MAX
                or self._waits_for_memory
                or self._holds
                or (slice_end and clock() >= slice_end)
            ):
                self._mute()
                break
            try:
                position = self._serve(self, view, position + 4, frame_end, end)
            except Exception as error:  # noqa: BLE001
                self._failed(self, error)
            if self.is_closed:
                return
            if position < end:  # Else a look at the clock would be for nothing.
                slice_end = slice_end or clock() + SLICE_SECONDS
        if position < end or self._held_bytes:
            self._keep(view[position:end], size, is_next=position > start)
            if self._is_muted:
                self._unmute()  # In later turns, if only the slice is over.

    def _keep(self, rest: memoryview, size: int, *, is_next: bool) -> None:
        """Keep whole frames that may not be served yet, or the beginning of one.

        The next frame waits for memory behind those of other connections.
        """
        if is_next:
            self._release_tail()
        if not self._is_muted and len(rest) >= 4 and size > LARGE_BYTES:
            self._release_tail()
            self._begin_large(rest, size + 4)
            return
        self._tail = bytearray(rest)
        if len(rest) > FREE_BYTES:
            added, self._held_bytes = len(rest) - self._held_bytes, len(rest)
            if not self._memory.hold(self, added) and not self._is_muted:
                self._wait_for_memory()

    def _release_tail(self) -> None:
        if self._held_bytes:
            self._held_bytes = 0
            self._memory.release(self)

    def _begin_large(self, beginning: memoryview, size: int) -> None:
        try:
            large = self._memory.borrow(size)
        except OSError:  # The system has no more mappings for us.
            self.close()
            return
        self._filled = len(beginning)
        large[: self._filled] = beginning
        self._large, self._large_size = large, size
        if not self._memory.hold(self, self._filled):
            self._wait_for_memory()

    def _serve_large(self, large: mmap) -> None:
        self._large = None  # Its batches may be staged, so that only a flush gives it back.
        position = size = self._large_size
        try:
            position = self._serve(self, memoryview(large), 4, size, size)
        except Exception as error:  # noqa: BLE001
            self._failed(self, error)
        if position or self.is_closed:
            self._memory.release_when_flushed(self, large)
        else:
            self._large = large  # It waits for its time.

    def _wait_for_memory(self) -> None:
        self._waits_for_memory = True
        self._mute()
        self._memory.wait(self)

    def memory_is_free(self) -> None:
        self._waits_for_memory = False
        self._unmute()

    def _is_congested(self) -> bool:
        return (
            self._queued_bytes > QUEUED_BYTES_MAX
            or len(self.replies) > REPLIES_WAITING_MAX
            or self._waits_for_memory
            or self._holds > 0
        )

    def _mute(self) -> None:
        if not self._is_muted:
            self._is_muted = True
            self._channel.pause_reading()

    def _unmute(self) -> None:
        """Go on in a later loop turn, if nothing keeps the connection muted any more."""
        if not self._is_muted or self.is_closed or self._is_congested():
            return
        if self._is_tail_servable() or self._is_large_complete():
            self._channel.serve_again(self._go_on)
        else:
            self._is_muted = False
            self._channel.resume_reading()

    def _go_on(self) -> None:
        """Serve the frames that were left, unless something keeps the connection muted again."""
        if not self._is_muted or self.is_closed or self._is_congested():
            return
        self._is_muted = False
        if self._large is not None:
            self._serve_large(self._large)
        else:
            tail, self._tail = self._tail, bytearray()
            self._serve_all(memoryview(tail), 0, len(tail))
        if not self._is_muted and not self.is_closed:
            self._channel.resume_reading()

    def _is_tail_servable(self) -> bool:
        """True if the tail begins with a whole frame, or with one that gets its own buffer.

        Any other tail waits for bytes, and keeps its place among those that wait for memory.
        """
        if len(self._tail) < 4:
            return False
        size = _INT32.unpack_from(self._tail)[0]
        return bool(size > LARGE_BYTES or size + 4 <= len(self._tail))

    def _is_large_complete(self) -> bool:
        return self._large is not None and self._filled == self._large_size
