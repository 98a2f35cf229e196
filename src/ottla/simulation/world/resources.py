"""What a broker's process holds: tasks, timers, connections, deleted files, memory of requests.

Taken when all clients are idle, and again in a fresh process on the same data. A process that has
served and met faults for a while holds no more than a fresh one.
"""

from dataclasses import dataclass, fields
from typing import Final

from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.machine import Machine
from ottla.simulation.world.network import SimulatedNetwork

# How much more than a fresh process: leaderships, and with them fetchers and sessions, have moved.
SLACK: Final = {
    "tasks": 8,
    "timers": 16,
    "connections": 12,
    "orphaned_files": 0,
    "request_bytes": 0,
}


@dataclass(frozen=True, slots=True)
class Resources:
    tasks: int
    timers: int
    connections: int  # From and to other brokers.
    orphaned_files: int  # Open, and not in any directory any more.
    request_bytes: int

    def excess(self, fresh: "Resources") -> list[str]:
        """Each kind of which there is clearly more than a fresh process has."""
        return [
            f"{mine} {kind}, {other} when fresh"
            for kind in (field.name for field in fields(self))
            if (mine := getattr(self, kind)) > (other := getattr(fresh, kind)) + SLACK[kind]
        ]


def resources_of(machine: Machine, network: SimulatedNetwork, loop: VirtualLoop) -> Resources:
    """Of a broker that serves."""
    process, broker = machine.process, machine.broker
    assert process is not None, "only a running process holds anything"
    assert broker is not None, "only a serving broker is looked at"
    return Resources(
        tasks=process.tasks,
        timers=loop.timers_of(process),
        connections=sum(
            1
            for end in network.sockets
            if end.host.process is process and end.other.host.process is not None
        ),
        orphaned_files=machine.disk.orphaned_files,
        request_bytes=broker.memory.used_bytes,
    )
