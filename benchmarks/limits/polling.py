"""A bare epoll loop over non-blocking sockets: the floor under the limits."""

import select
import socket
from collections.abc import Callable
from typing import Protocol


class Served(Protocol):
    """A connection of a limit server."""

    def readable(self) -> bool:
        """Take what came; False when the peer is gone."""

    def writable(self) -> None: ...


def serve(port: int, connect: Callable[[socket.socket, select.epoll], Served]) -> None:
    """Accept and serve for ever; the process is ended by a signal."""
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    listener.setblocking(False)
    poller = select.epoll()
    poller.register(listener, select.EPOLLIN)
    sockets: dict[int, socket.socket] = {}
    connections: dict[int, Served] = {}
    while True:
        for descriptor, events in poller.poll():
            if descriptor == listener.fileno():
                accepted, _ = listener.accept()
                accepted.setblocking(False)
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                poller.register(accepted, select.EPOLLIN)
                sockets[accepted.fileno()] = accepted
                connections[accepted.fileno()] = connect(accepted, poller)
                continue
            connection = connections[descriptor]
            if events & select.EPOLLIN and not connection.readable():
                poller.unregister(descriptor)
                del connections[descriptor]
                sockets.pop(descriptor).close()
            elif events & select.EPOLLOUT:
                connection.writable()
