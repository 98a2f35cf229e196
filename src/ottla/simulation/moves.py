"""Administrators who move partitions between the nodes of a run, and give them other leaders."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Final

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model.types import NodeId
from ottla.protocol.messages import alter_partition_reassignments as reassigning
from ottla.protocol.messages import elect_leaders as electing
from ottla.simulation.cluster_plan import ClusterPlan
from ottla.simulation.workload import CLIENT, Connect, Workload

PREFERRED: Final = 0
REPLICAS_MIN: Final = 2


class Moves:
    def __init__(
        self, plan: ClusterPlan, nodes: list[NodeId], workload: Workload, connect: Connect
    ) -> None:
        self.counts: dict[str, int] = {}
        self._plan = plan
        self._nodes = nodes
        self._workload = workload
        self._connect = connect

    def begin(self, group: asyncio.TaskGroup) -> None:
        rates = self._plan.rates
        if rates.reassignment:
            group.create_task(self._repeat("reassignment", rates.reassignment, self._reassign))
        if rates.election:
            group.create_task(self._repeat("election", rates.election, self._elect))

    async def _repeat(
        self, name: str, rate: float, move: Callable[[Cluster, Random], Awaitable[None]]
    ) -> None:
        """What is refused, or not answered, is left: the cluster must come to rest either way."""
        chance = Random(f"{name}/{self._plan.seed}")
        cluster = self._connect(f"{name}-admin", CLIENT)
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if self._workload.is_over:
                return
            self.counts[name] = self.counts.get(name, 0) + 1
            with suppress(ClientError):
                await move(cluster, chance)

    async def _reassign(self, cluster: Cluster, chance: Random) -> None:
        count = chance.randint(REPLICAS_MIN, len(self._nodes))
        replicas = [int(node) for node in chance.sample(self._nodes, count)]
        topic, partition = self._place(chance)
        part = reassigning.ReassignablePartition(partition, replicas)
        request = reassigning.Request(topics=[reassigning.ReassignableTopic(topic, [part])])
        connection = await cluster.controller()
        await connection.ask(request, reassigning.Response, timeout_ms=CLIENT.request_ms_max)

    async def _elect(self, cluster: Cluster, chance: Random) -> None:
        topic, partition = self._place(chance)
        places = [electing.TopicPartitions(topic, [partition])]
        request = electing.Request(PREFERRED, places)
        connection = await cluster.controller()
        await connection.ask(request, electing.Response, timeout_ms=CLIENT.request_ms_max)

    def _place(self, chance: Random) -> tuple[str, int]:
        return chance.choice(self._workload.topics), chance.randrange(self._plan.partitions)
