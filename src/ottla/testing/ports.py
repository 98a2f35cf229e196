"""Ports that a test keeps: nobody else gets one, not even while its broker is away.

They lie below those that the system gives to connections. Tests that run beside each other would
now and then find the same port free, before either's broker listens there; so a port is taken by
a UDP socket of the same number, which only one process can have, and which ends with it.
"""

import socket
from random import SystemRandom
from typing import Final

HOST: Final = "127.0.0.1"
PORTS: Final = range(20_000, 32_000)


class Ports:
    def __init__(self, count: int) -> None:
        self._taken: dict[int, socket.socket] = {}
        chance = SystemRandom()
        while len(self._taken) < count:
            port = chance.choice(PORTS)
            mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                mark.bind((HOST, port))
                socket.create_server((HOST, port)).close()
            except OSError:
                mark.close()
            else:
                self._taken[port] = mark

    @property
    def numbers(self) -> list[int]:
        return list(self._taken)

    def close(self) -> None:
        """Let others have them."""
        for mark in self._taken.values():
            mark.close()
        self._taken.clear()
