"""The kernel's sockets as a network: what listens and connects; channels do the rest."""

import errno
import socket
from collections.abc import Callable

from ottla.env.channels import SocketChannel, SocketListener, Sockets
from ottla.env.descriptors import opened
from ottla.env.loop import DispatchLoop
from ottla.env.network import DEFAULT_OPTIONS, Channel, Peer, SocketOptions
from ottla.env.workers import Workers


class SocketNetwork(Sockets):
    def __init__(self, loop: DispatchLoop, workers: Workers) -> None:
        super().__init__(loop, loop.selector, workers)

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
            connecting = opened(socket.socket, family, kind, protocol)
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
