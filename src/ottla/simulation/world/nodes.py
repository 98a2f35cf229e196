"""The nodes of a simulated cluster: a machine each, formatted as those of one local cluster are.

Every node is a host of its own, with its own disk and its own clock. Each runs the real `Broker`;
the first three are controllers, too, and form the quorum. A node that is alone formats itself when
it starts, as `ottla up` does.
"""

import asyncio
from random import Random
from typing import Final

from ottla.broker.node.broker import Broker
from ottla.broker.node.directory_format import Format, format_directories
from ottla.broker.node.local_cluster import CONTROLLER, LocalCluster, Node
from ottla.broker.settings.settings import Settings, zero_configuration
from ottla.env.network import Address
from ottla.metadata.image.ids import new_uuid
from ottla.model.types import NodeId, uuid_text
from ottla.quorum import voters
from ottla.simulation.plans.plan import Plan
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.machine import Machine
from ottla.simulation.world.network import SimulatedNetwork

PORT: Final = 9092
CONTROLLER_PORT: Final = 9093


def rack_of(node: NodeId) -> str:
    """Where racks count, each node has one of its own."""
    return f"rack-{node}"


class Nodes:
    def __init__(self, plan: Plan, loop: VirtualLoop, network: SimulatedNetwork) -> None:
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
        self._directories = [f"/data-{number}" for number in range(plan.log_dirs)]
        for node in layout.nodes:
            properties = self._properties(layout, node) | plan.settings
            if plan.is_racked:
                properties["broker.rack"] = rack_of(node.id)
            settings = Settings.load(properties, host_name=lambda: "nowhere")
            self.machines[node.id] = Machine(
                plan, network, VirtualClock(loop), host=node.host, settings=settings
            )
        self._by_host = {machine.host: machine for machine in self.machines.values()}
        if not plan.is_alone:
            self._format(plan, layout, Random(f"format/{plan.seed}"))

    @property
    def all(self) -> list[Machine]:
        return list(self.machines.values())

    def at(self, host: str) -> Machine | None:
        """The node at this host; None at a client's."""
        return self._by_host.get(host)

    @property
    def is_one(self) -> bool:
        return len(self.machines) == 1

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

    def _properties(self, layout: LocalCluster, node: Node) -> dict[str, str]:
        directories = ",".join(self._directories)
        if len(layout.nodes) == 1:
            return zero_configuration(directories, host=node.host, port=PORT)
        return layout.properties_of(node) | {"log.dirs": directories}

    def _format(self, plan: Plan, layout: LocalCluster, source: Random) -> None:
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
            for directory in self._directories:
                machine.disk.make_directory(directory)
            wanted = Format(
                cluster_id=cluster_id,
                node_id=node.id,
                directories=self._directories,
                metadata_directory=self._directories[0],
                initial_voters=initial,
                features=plan.features,
                release_version=plan.release_version,
            )
            format_directories(machine.disk, wanted, machine.clock.wall(), source.randbytes)
            machine.disk.sync_filesystem("/")
