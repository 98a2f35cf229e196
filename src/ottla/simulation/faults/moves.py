"""Administrators who move partitions between the nodes of a run, and give them other leaders.

They also take a voter out of the quorum, and make it one again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Final

from ottla.broker.node.local_cluster import CONTROLLER
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model.types import NodeId
from ottla.protocol.messages import add_raft_voter, remove_raft_voter
from ottla.protocol.messages import alter_partition_reassignments as reassigning
from ottla.protocol.messages import elect_leaders as electing
from ottla.simulation.clients.workload import CLIENT, Connect, Workload
from ottla.simulation.plans.plan import Plan
from ottla.simulation.world.nodes import CONTROLLER_PORT, Nodes

PREFERRED: Final = 0


class Moves:
    def __init__(self, plan: Plan, nodes: Nodes, workload: Workload, connect: Connect) -> None:
        self.counts: dict[str, int] = {}
        self.is_over = False  # Each new controller gives every broker a new session: it must end.
        self._plan = plan
        self._nodes = nodes
        self._workload = workload
        self._connect = connect

    def begin(self, group: asyncio.TaskGroup) -> None:
        moves = {
            "reassignment": self._reassign,
            "election": self._elect,
            "voter_change": self._change_voters,
        }
        for name, move in moves.items():
            if rate := getattr(self._plan.rates, name):
                group.create_task(self._repeat(name, rate, move))

    async def _repeat(
        self, name: str, rate: float, move: Callable[[Cluster, Random], Awaitable[None]]
    ) -> None:
        """What is refused, or not answered, is left: the cluster must come to rest either way."""
        chance = Random(f"{name}/{self._plan.seed}")
        cluster = self._connect(f"{name}-admin", CLIENT)
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if self.is_over:
                return
            self.counts[name] = self.counts.get(name, 0) + 1
            with suppress(ClientError):
                await move(cluster, chance)

    async def _reassign(self, cluster: Cluster, chance: Random) -> None:
        nodes = list(self._nodes.machines)
        count = chance.randint(self._plan.replicas_min, len(nodes))
        replicas = [int(node) for node in chance.sample(nodes, count)]
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

    async def _change_voters(self, cluster: Cluster, chance: Random) -> None:
        """The one who is missing comes back; else one of them goes, which may be the leader."""
        quorum = await Admin(cluster).quorum()
        missing = [who for who in quorum.observers if who.replica_id in self._nodes.voters]
        connection = await cluster.controller()
        timeout_ms = CLIENT.request_ms_max
        if not missing:
            if len(quorum.current_voters) < len(self._nodes.voters):
                return  # A new leader does not know yet where the missing one is.
            who = chance.choice(quorum.current_voters)
            leaving = remove_raft_voter.Request(None, who.replica_id, who.replica_directory_id)
            await connection.ask(leaving, remove_raft_voter.Response, timeout_ms=timeout_ms)
            return
        who = chance.choice(missing)
        host = self._nodes.machines[NodeId(who.replica_id)].host
        where = [add_raft_voter.Listener(CONTROLLER, host, CONTROLLER_PORT)]
        joining = add_raft_voter.Request(
            None, timeout_ms, who.replica_id, who.replica_directory_id, where
        )
        await connection.ask(joining, add_raft_voter.Response, timeout_ms=timeout_ms)

    def _place(self, chance: Random) -> tuple[str, int]:
        topic = chance.choice(self._workload.topics)
        return topic, chance.randrange(self._workload.partitions[topic])
