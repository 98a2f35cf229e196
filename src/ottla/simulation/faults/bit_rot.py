"""Bit rot: one bit of a sealed segment changes on one replica, and an operator scrubs the disks.

Only bytes that a batch's checksum covers, and only one replica at a time, of which every other
replica has the same records: else no correct broker could repair the damage. Segments past the
recovery point are left alone: after a kill their damage passes for a torn tail.
"""

import asyncio
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Final

from ottla.broker.node import inspection
from ottla.model.types import NodeId, Offset, TopicPartition
from ottla.records.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES
from ottla.simulation.clients.workload import TOPIC_PREFIX, Workload
from ottla.simulation.invariants.known_metadata import KnownMetadata
from ottla.simulation.plans.plan import Plan
from ottla.simulation.world.nodes import Nodes
from ottla.simulation.world.process import Process

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG: Final = ".log"
SCRUB_SECONDS: Final = 0.7


@dataclass(frozen=True, slots=True)
class Damage:
    node: NodeId
    path: str
    position: int
    byte: int  # The changed one.


class BitRot:
    def __init__(
        self, plan: Plan, nodes: Nodes, metadata: KnownMetadata, workload: Workload
    ) -> None:
        self.count = 0
        self.is_over = False
        self._plan = plan
        self._nodes = nodes
        self._metadata = metadata
        self._workload = workload
        self._damage: Damage | None = None
        self._scrubbing: tuple[Process, asyncio.Task[None]] | None = None

    @property
    def holders(self) -> set[NodeId]:
        """Nodes whose records are damaged now, as far as anyone could know."""
        return set() if self._damage is None else {self._damage.node}

    async def run(self) -> None:
        """Damage a replica now and then, read it, and scrub its node until it is repaired."""
        chance = Random(f"bit rot/{self._plan.seed}")
        while not self.is_over:
            await asyncio.sleep(chance.expovariate(self._plan.rates.bit_rot))
            if self.is_over or not self._damage_one(chance):
                continue
            await self._read()
            while not self._is_repaired():
                await asyncio.sleep(SCRUB_SECONDS)
                self._scrub()
            self._damage = None

    def _damage_one(self, chance: Random) -> bool:
        node = chance.choice(list(self._nodes.machines))
        paths = list(self._sealed(node))
        if not paths:
            return False
        path = chance.choice(paths)
        disk = self._nodes.machines[node].disk
        data = disk.peek(path)
        start, end = chance.choice(_records(data))
        position, bit = chance.randrange(start, end), chance.randrange(8)
        disk.flip_bit(path, position, bit)
        self._damage = Damage(node, path, position, data[position] ^ (1 << bit))
        self.count += 1
        return True

    def _sealed(self, node: NodeId) -> list[str]:
        """Files of sealed segments that this node has synced and every replica has completely."""
        machine = self._nodes.machines[node]
        if machine.broker is None:
            return []
        found = []
        for directory in machine.directories:
            points = _recovery_points(machine.disk.peek(f"{directory}/{RECOVERY_POINTS}"))
            for place, point in points.items():
                if not place.topic.startswith(TOPIC_PREFIX):
                    continue
                bound = min(point, self._shared_end(place))
                folder = f"{directory}/{place.topic}-{place.partition}"
                logs = [name for name in machine.disk.names(folder) if name.endswith(LOG)]
                for name, following in pairwise(logs):
                    path = f"{folder}/{name}"
                    if int(following.removesuffix(LOG)) <= bound and _records(
                        machine.disk.peek(path)
                    ):
                        found.append(path)
        return found

    def _shared_end(self, place: TopicPartition) -> Offset:
        """The end that all replicas in sync have; 0 unless every replica serves and is in sync."""
        views = [
            view
            for _, broker in self._nodes.serving()
            for view in inspection.partitions(broker)
            if view.name == place
        ]
        if not views:
            return 0
        state = self._metadata.committed.get((views[0].topic_id, place.partition))
        if state is None or not len(state.isr) == len(state.replicas) == len(views) > 1:
            return 0
        return min(view.high_watermark for view in views)

    def _is_repaired(self) -> bool:
        damage = self._damage
        assert damage is not None, "there is one"
        data = self._nodes.machines[damage.node].disk.peek(damage.path)
        return len(data) <= damage.position or data[damage.position] != damage.byte

    async def _read(self) -> None:
        assert self._damage is not None, "there is one"
        topic, _, partition = self._damage.path.split("/")[-2].rpartition("-")
        await self._workload.read_again(TopicPartition(topic, int(partition)))

    def _scrub(self) -> None:
        """One at a time: of a log of many segments, a scrub takes longer than the interval."""
        assert self._damage is not None, "there is one"
        machine = self._nodes.machines[self._damage.node]
        broker, process = machine.broker, machine.process
        if broker is None or process is None:
            return
        if self._scrubbing is not None:
            scrubbed, task = self._scrubbing
            if scrubbed is process and not task.done():
                return
        self._scrubbing = process, process.start(broker.scrubber.scrub())


def _recovery_points(data: bytes) -> dict[TopicPartition, Offset]:
    """Version, count, and a line for each partition."""
    points = {}
    for line in data.decode().splitlines()[2:]:
        topic, partition, offset = line.split()
        points[TopicPartition(topic, int(partition))] = Offset(int(offset))
    return points


def _records(data: bytes) -> list[tuple[int, int]]:
    """Positions of the records of each batch: after its header, up to its end."""
    found, at = [], 0
    while at + HEADER_BYTES < len(data):
        size = LOG_OVERHEAD_BYTES + int.from_bytes(data[at + 8 : at + 12], "big")
        found.append((at + HEADER_BYTES, at + size))
        at += size
    return found
