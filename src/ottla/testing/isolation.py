"""A network that can be partitioned: all traffic is dropped, without closing connections.

Nodes on both sides see the same as with a broken switch. It wraps a real network; data sent during
the partition leaves when it is healed.
"""

import asyncio
from collections.abc import Callable, Sequence
from weakref import WeakSet

from ottla.env.network import DEFAULT_OPTIONS, Address, Channel, Listening, Network, Peer, Piece
from ottla.env.network import SocketOptions as Options
from ottla.testing.request_log import RequestLog


class CuttableChannel:
    """A channel that stops reading and writing while its network is partitioned."""

    def __init__(self, network: "CuttableNetwork", channel: Channel) -> None:
        self.remote = channel.remote
        self._channel = channel
        self._held: list[Piece] = []
        self._is_paused = False
        self._network = network
        network.channels.add(self)

    def send(self, pieces: Sequence[Piece]) -> None:
        if self._network.is_cut:
            self._held += pieces
        else:
            self._channel.send(pieces)

    def pause_reading(self) -> None:
        self._is_paused = True
        self._channel.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        if not self._network.is_cut:
            self._channel.resume_reading()

    def serve_again(self, serve: Callable[[], None]) -> None:
        self._channel.serve_again(serve)

    def close(self) -> None:
        self._network.channels.discard(self)
        self._channel.close()

    @property
    def unsent(self) -> int:
        return len(self._held) + self._channel.unsent

    def cut(self) -> None:
        self._channel.pause_reading()

    def heal(self) -> None:
        if not self._is_paused:
            self._channel.resume_reading()
        held, self._held = self._held, []
        if held:
            self._channel.send(held)


class CuttableNetwork:
    def __init__(self, network: Network) -> None:
        self.is_cut = False
        self.channels: WeakSet[CuttableChannel] = WeakSet()
        self.requests = RequestLog()
        self._network = network
        self._healed = asyncio.Event()
        self._healed.set()

    @property
    def before_sending(self) -> Callable[[], None]:
        return self._network.before_sending

    @before_sending.setter
    def before_sending(self, hook: Callable[[], None]) -> None:
        self._network.before_sending = hook

    @property
    def clock(self) -> Callable[[], float]:
        return self._network.clock

    @property
    def peer_failures(self) -> int:
        return self._network.peer_failures

    def peer_failed(self, remote: Address, error: Exception) -> None:
        self._network.peer_failed(remote, error)

    def end_turn_soon(self) -> None:
        self._network.end_turn_soon()

    async def listen(
        self,
        host: str,
        port: int,
        accept: Callable[[Channel], Peer],
        options: Options = DEFAULT_OPTIONS,
    ) -> Listening:
        return await self._network.listen(
            host, port, self._cuttable(self.requests.tap(accept)), options
        )

    async def connect(self, host: str, port: int, accept: Callable[[Channel], Peer]) -> Channel:
        await self._healed.wait()  # No connection succeeds until then; the caller has a timeout.
        return await self._network.connect(host, port, self._cuttable(accept))

    def cut(self) -> None:
        self.is_cut = True
        self._healed.clear()
        for channel in list(self.channels):
            channel.cut()

    def heal(self) -> None:
        self.is_cut = False
        self._healed.set()
        for channel in list(self.channels):
            channel.heal()

    def _cuttable(self, accept: Callable[[Channel], Peer]) -> Callable[[Channel], Peer]:
        def accept_cuttable(channel: Channel) -> Peer:
            made = CuttableChannel(self, channel)
            peer = accept(made)
            if self.is_cut:
                # The channel starts to read once it has its peer.
                asyncio.get_running_loop().call_soon(self._cut_late, made)
            return peer

        return accept_cuttable

    def _cut_late(self, channel: CuttableChannel) -> None:
        if self.is_cut:
            channel.cut()
