"""Hostile clients as a process: several threads, each with its own seed and connections.

    python attacker.py PORT SEED SECONDS THREADS TOPIC...

Prints how many streams were sent when the time is over.
"""

import random
import socket
import sys
import threading
import time

from ottla.simulation.clients.hostile_client import HostileFrames

READ_SECONDS = 0.05
LINGER_SECONDS = 0.3


class Attacker(threading.Thread):
    def __init__(self, port: int, seed: int, end: float, topics: list[str]) -> None:
        super().__init__(daemon=True)
        self._port, self._end = port, end
        self._rng = random.Random(seed)
        self._frames = HostileFrames(self._rng, topics, lambda: int(time.time() * 1000))
        self.streams = 0

    def run(self) -> None:
        while time.monotonic() < self._end:
            try:
                self._attack(self._frames.stream())
            except OSError:
                time.sleep(0.01)

    def _attack(self, stream: bytes) -> None:
        rng = self._rng
        with socket.create_connection(("127.0.0.1", self._port), timeout=1) as connection:
            connection.settimeout(READ_SECONDS)
            cut = rng.randrange(len(stream) + 1)
            connection.sendall(stream[:cut])
            connection.sendall(stream[cut:])
            self.streams += 1
            match rng.randrange(4):
                case 0:
                    return
                case 1:
                    time.sleep(LINGER_SECONDS)  # Without reading.
                case _:
                    while connection.recv(1 << 16):
                        pass


def main(port: int, seed: int, seconds: float, threads: int, topics: list[str]) -> None:
    end = time.monotonic() + seconds
    attackers = [Attacker(port, seed + number, end, topics) for number in range(threads)]
    for attacker in attackers:
        attacker.start()
    for attacker in attackers:
        attacker.join()
    print(sum(attacker.streams for attacker in attackers))  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
