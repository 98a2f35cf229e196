"""Bare framing on the broker's own loop and sockets: the same as `framing`, on our transport."""

import asyncio
import sys
from struct import Struct

from ottla.env.loop import DispatchLoop
from ottla.env.network import Channel
from ottla.env.sockets import SocketNetwork
from ottla.env.workers import ThreadWorkers

_SIZE = Struct(">i")
_CORRELATION = Struct(">4xi")
_REPLY = Struct(">ii")
_shared = memoryview(bytearray(1 << 20))


class Framing:
    __slots__ = ("_channel", "_tail")

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._tail = b""

    def buffer(self) -> memoryview:
        kept = len(self._tail)
        if not kept:
            return _shared
        _shared[:kept] = self._tail
        return _shared[kept:]

    def received(self, count: int) -> None:
        end, position, replies = len(self._tail) + count, 0, []
        while end - position >= 4:
            frame_end = position + 4 + _SIZE.unpack_from(_shared, position)[0]
            if frame_end > end:
                break
            replies.append(_REPLY.pack(4, _CORRELATION.unpack_from(_shared, position + 4)[0]))
            position = frame_end
        self._tail = bytes(_shared[position:end])
        if replies:
            self._channel.send([b"".join(replies)])

    def sent(self) -> None:
        pass

    def closed(self) -> None:
        pass


async def serve(loop: DispatchLoop, port: int) -> None:
    network = SocketNetwork(loop, ThreadWorkers())
    listening = await network.listen("127.0.0.1", port, Framing)
    listening.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    loop = DispatchLoop()
    loop.run_until_complete(serve(loop, int(sys.argv[1])))
