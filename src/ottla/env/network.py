"""The network seam: what a connection is to the broker, and what the transport is to a connection.

A `Peer` is sans-IO: it says where the next bytes go, is told how many came, and gives back
buffers and file ranges through its `Channel`, in order. The transport behind the channel is the
kernel's sockets (`sockets.py`) or a simulated network; both carry the same bytes.

A turn is one round of the event loop. Before a turn's output leaves, the network calls the
`before_sending` hook, so that nothing is answered before it is written.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.env.files import FileRange

Piece = bytes | bytearray | memoryview | FileRange


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class SocketOptions(NamedTuple):
    """What a listener's sockets are asked for; -1 leaves a buffer to the system."""

    backlog: int = 50
    receive_buffer_bytes: int = -1
    send_buffer_bytes: int = -1


DEFAULT_OPTIONS: Final = SocketOptions()


class Peer(Protocol):
    """The sans-IO side of a connection. An exception that it raises closes the connection."""

    def buffer(self) -> memoryview:
        """Where the next bytes are to be received."""

    def received(self, count: int) -> None:
        """So many bytes were put into `buffer()`."""

    def sent(self) -> None:
        """All pieces given to the channel have left."""

    def closed(self) -> None:
        """The connection is gone, whoever ended it."""


class Channel(Protocol):
    """The transport's side of a connection."""

    remote: Address

    def send(self, pieces: Sequence[Piece]) -> None:
        """Queue pieces; they leave at the end of this turn."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...

    def serve_again(self, serve: Callable[[], None]) -> None:
        """Call `serve` in a later loop turn, after the channels that wait for one already.

        Not called if the channel is closed before. An exception that it raises closes the channel.
        """

    def close(self) -> None:
        """Drop the connection at once; what was not sent is lost."""

    @property
    def unsent(self) -> int:
        """How many pieces wait to be sent."""


class Listening(Protocol):
    """A bound address: peers may connect, and are accepted from `start` on."""

    address: Address

    def start(self) -> None: ...
    def close(self) -> None: ...


class Network(Protocol):
    before_sending: Callable[[], None]

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds, from any start: measures the time that requests take of a loop turn."""

    @property
    def peer_failures(self) -> int:
        """How many connections were closed because their peer raised an exception."""

    def peer_failed(self, remote: Address, error: Exception) -> None:
        """The guard: log and count an exception whose connection was closed for it.

        Raises a failed assert again: it ends the process.
        """

    def end_turn_soon(self) -> None:
        """Something was staged outside a network event: run the hook and send, soon."""

    async def listen(
        self,
        host: str,
        port: int,
        accept: Callable[[Channel], Peer],
        options: SocketOptions = DEFAULT_OPTIONS,
    ) -> Listening: ...

    async def connect(self, host: str, port: int, accept: Callable[[Channel], Peer]) -> Channel: ...
