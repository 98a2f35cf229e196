"""The nodes of a simulated cluster: a machine each, formatted as those of one local cluster are.

Every node is a host of its own, with its own disk and its own clock. Each runs the real `Broker`;
the first three are controllers, too, and form the quorum.
"""

import asyncio
from random import Random
from typing import Final

from ottla.broker.formatting import Format, format_directories
from ottla.broker.local_cluster import CONTROLLER, FEATURES, LocalCluster, Node
from ottla.broker.server import Broker
from ottla.broker.settings import Settings
from ottla.env.network import Address
from ottla.metadata.ids import new_uuid
from ottla.model.types import NodeId, uuid_text
from ottla.quorum import voters
from ottla.simulation.clock import VirtualClock
from ottla.simulation.cluster_plan import ClusterPlan
from ottla.simulation.loop import VirtualLoop
from ottla.simulation.machine import Machine
from ottla.simulation.network import SimulatedNetwork

PORT: Final = 9092
CONTROLLER_PORT: Final = 9093


class Nodes:
    def __init__(self, plan: ClusterPlan, loop: VirtualLoop, network: SimulatedNetwork) -> None:
        layout = LocalCluster(
            [
                Node(NodeId(number), "/data", f"node-{number}", PORT, CONTROLLER_PORT)
                for number in range(1, plan.brokers + 1)
            ],
            rack="simulated",
        )
        self.voters: list[NodeId] = [node.id for node in layout.voters]
        self.addresses = [Address(node.host, node.port) for node in layout.nodes]
        self.machines: dict[NodeId, Machine] = {}
        for node in layout.nodes:
            properties = layout.properties_of(node) | plan.settings
            settings = Settings.load(properties, host_name=lambda: "nowhere")
            self.machines[node.id] = Machine(
                plan, network, VirtualClock(loop), host=node.host, settings=settings
            )
        self._format(layout, Random(f"format/{plan.seed}"))

    @property
    def all(self) -> list[Machine]:
        return list(self.machines.values())

    @property
    def hosts(self) -> list[str]:
        return [machine.host for machine in self.all]

    def serving(self) -> list[tuple[NodeId, Broker]]:
        """Those that can be looked into now."""
        return [(n, m.broker) for n, m in self.machines.items() if m.broker is not None]

    def supervise(self) -> None:
        for machine in self.all:
            machine.supervise()

    async def wait_serving(self) -> None:
        await asyncio.gather(*(machine.wait_serving() for machine in self.all))

    def end(self) -> None:
        for machine in self.all:
            machine.end()

    def _format(self, layout: LocalCluster, source: Random) -> None:
        cluster_id = uuid_text(new_uuid(source.randbytes))
        initial = voters.Voters.of(
            voters.Voter(
                node.id,
                new_uuid(source.randbytes),
                {CONTROLLER: voters.Address(node.host, node.controller_port)},
            )
            for node in layout.voters
        )
        for node in layout.nodes:
            machine = self.machines[node.id]
            directory = node.log_directory
            machine.disk.make_directory(directory)
            wanted = Format(
                cluster_id=cluster_id,
                node_id=node.id,
                directories=[directory],
                metadata_directory=directory,
                initial_voters=initial,
                features=FEATURES,
            )
            format_directories(machine.disk, wanted, machine.clock.wall(), source.randbytes)
            machine.disk.sync_filesystem("/")
