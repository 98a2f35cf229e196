"""Hostile clients of a run: they write to topics of their own, and nobody else may notice them."""

import asyncio
from functools import partial
from random import Random
from typing import Final

from ottla.client.admin import Admin
from ottla.client.errors import Refused
from ottla.model.errors import ErrorCode
from ottla.simulation.clients.hostile_client import HostileClient, HostileFrames
from ottla.simulation.clients.workload import CLIENT, Connect, persist
from ottla.simulation.plans.plan import Plan
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.nodes import Nodes

TOPICS: Final = {
    "hostile-plain": {},
    "hostile-compacted": {"cleanup.policy": "compact"},
    "hostile-append": {"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"},
}


class HostileWorkload:
    def __init__(
        self, plan: Plan, nodes: Nodes, network: SimulatedNetwork, connect: Connect
    ) -> None:
        self._plan = plan
        self._nodes = nodes
        self._network = network
        self._connect = connect
        self._clients: list[HostileClient] = []

    @property
    def streams(self) -> int:
        """How many connections the hostile clients have made."""
        return sum(client.streams for client in self._clients)

    async def create_topics(self) -> None:
        admin = Admin(self._connect("hostile-admin", CLIENT))
        for topic, configs in TOPICS.items():
            await persist(partial(_create, admin, topic, configs))

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Each client attacks one node."""
        for number in range(self._plan.hostile_clients):
            name = f"hostile-{number}"
            rng = Random(f"{name}/{self._plan.seed}")
            machine = self._nodes.all[number % len(self._nodes.all)]
            frames = HostileFrames(rng, list(TOPICS), machine.clock.wall)
            address = self._nodes.addresses[number % len(self._nodes.addresses)]
            client = HostileClient(self._network.host(name), address, frames, rng)
            self._clients.append(client)
            group.create_task(client.run())

    def stop(self) -> None:
        for client in self._clients:
            client.is_over = True


async def _create(admin: Admin, topic: str, configs: dict[str, str]) -> None:
    try:
        await admin.create_topic(topic, partitions=1, configs=configs)
    except Refused as refused:  # An attempt before this one may have succeeded unheard.
        if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
