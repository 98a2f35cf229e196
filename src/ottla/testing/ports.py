"""Ports reserved for a test, also while its broker is down.

They are below the system's ephemeral ports. Concurrent tests could find the same port free before
either broker listens on it; so a port is reserved by a UDP socket of the same number, which only
one process can bind, and which ends with the process.
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
        """Release the ports."""
        for mark in self._taken.values():
            mark.close()
        self._taken.clear()
