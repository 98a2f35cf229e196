"""How the nodes of a run reach each other and their clients, and how that is cut.

As root every node has a network namespace of its own behind a bridge, and any direction of any
link can be cut: by a blackhole route, which the sender notices, or by a neighbour whose address is
wrong, which nobody does. Otherwise a node's process can only be cut off from everyone at once, by
what `ottla.testing` isolates with.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from itertools import permutations
from typing import Protocol

from tests.conformance.broker_process import free_ports

CLIENTS = 0  # As a side of a link; nodes are called from 1 on.
WRONG_ADDRESS = "02:00:00:00:00:01"
START = [sys.executable, "-m", "ottla.cli.main", "start"]
START_HOSTED = [sys.executable, "-m", "tests.chaos.hosted_node", "start"]

Link = tuple[int, int]  # From, to.


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node listens, and how one is started there."""

    host: str
    port: int
    controller_port: int
    command: list[str]


class Wiring(Protocol):
    name: str

    def place(self, node_id: int) -> Place: ...

    def isolate(self, node_id: int, pid: int) -> None:
        """Cut a node off from everyone, clients too; nobody is told."""

    def heal(self) -> None: ...

    def close(self) -> None: ...


class Namespaces:
    name = "network namespaces"

    def __init__(self, node_ids: Collection[int]) -> None:
        self._tag = f"ot{os.getpid() % 100_000}"
        self._network = f"10.77.{os.getpid() % 250 + 1}"
        self._node_ids = list(node_ids)
        self._undo: list[list[str]] = []
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def place(self, node_id: int) -> Place:
        # Not `ip netns exec`: that has a copy of every mount, which nobody can unmount then.
        command = ["nsenter", f"--net=/run/netns/{self._space(node_id)}", *START]
        return Place(self._host(node_id), 9092, 9093, command)

    def isolate(self, node_id: int, pid: int) -> None:
        everyone = permutations([CLIENTS, *self._node_ids], 2)
        self.cut([link for link in everyone if node_id in link], is_silent=True)

    def cut(self, links: Collection[Link], *, is_silent: bool) -> None:
        for source, target in links:
            host = self._host(target)
            device = self._tag if source == CLIENTS else "e0"
            if is_silent:
                at, wrong = ["dev", device], ["lladdr", WRONG_ADDRESS, "nud", "permanent"]
                self._at(source, "neigh", "replace", host, *wrong, *at)
                self._undo.append(self._command(source, "neigh", "del", host, *at))
            else:
                self._at(source, "route", "add", "blackhole", f"{host}/32")
                self._undo.append(self._command(source, "route", "del", "blackhole", f"{host}/32"))

    def heal(self) -> None:
        while self._undo:
            subprocess.run(self._undo.pop(), check=True)

    def close(self) -> None:
        commands = [["ip", "netns", "del", self._space(node_id)] for node_id in self._node_ids]
        for command in [*self._undo, *commands, ["ip", "link", "del", self._tag]]:
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)

    def _make(self) -> None:
        self._at(CLIENTS, "link", "add", self._tag, "type", "bridge")
        self._at(CLIENTS, "link", "set", self._tag, "up")
        self._at(CLIENTS, "addr", "add", f"{self._host(CLIENTS)}/24", "dev", self._tag)
        for node_id in self._node_ids:
            space, outside = self._space(node_id), f"{self._tag}v{node_id}"
            self._at(CLIENTS, "netns", "add", space)
            veth = ["link", "add", outside, "type", "veth", "peer", "name", "e0", "netns", space]
            self._at(CLIENTS, *veth)
            self._at(CLIENTS, "link", "set", outside, "master", self._tag, "up")
            self._at(node_id, "addr", "add", f"{self._host(node_id)}/24", "dev", "e0")
            self._at(node_id, "link", "set", "e0", "up")
            self._at(node_id, "link", "set", "lo", "up")

    def _at(self, side: int, *arguments: str) -> None:
        subprocess.run(self._command(side, *arguments), check=True)

    def _command(self, side: int, *arguments: str) -> list[str]:
        inside = [] if side == CLIENTS else ["-n", self._space(side)]
        return ["ip", *inside, *arguments]

    def _space(self, node_id: int) -> str:
        return f"{self._tag}n{node_id}"

    def _host(self, side: int) -> str:
        return f"{self._network}.{254 if side == CLIENTS else side}"


class Loopback:
    """Everyone on 127.0.0.1; a node cuts itself off when it is told to by a signal."""

    name = "processes that cut themselves off"

    def __init__(self, node_ids: Collection[int]) -> None:
        ports = iter(free_ports(2 * len(node_ids)))
        self._places = {
            node_id: Place("127.0.0.1", next(ports), next(ports), START_HOSTED)
            for node_id in node_ids
        }
        self._cut: list[int] = []

    def place(self, node_id: int) -> Place:
        return self._places[node_id]

    def isolate(self, node_id: int, pid: int) -> None:
        os.kill(pid, signal.SIGUSR1)
        self._cut.append(pid)

    def heal(self) -> None:
        while self._cut:
            with suppress(ProcessLookupError):
                os.kill(self._cut.pop(), signal.SIGUSR2)

    def close(self) -> None:
        """Nothing is left behind."""


def can_make_namespaces() -> bool:
    """Whether this user and this kernel can; a container's root often cannot."""
    name = f"ot{os.getpid() % 100_000}try"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    except FileNotFoundError:
        return False
    if made.returncode == 0:
        subprocess.run(["ip", "netns", "del", name], check=False)
    return made.returncode == 0
