"""30 brokers and 30,000 partitions in virtual time: what the metadata of a large cluster costs.

    python -m benchmarks.scale --brokers 30 --partitions 30000

The nodes are real: quorum, controllers, observers, registration, heartbeats, elections, snapshots,
images. Left out are the logs of the partitions, their replication, and clients: a node learns what
it hosts and leads, and does not open it. What is counted is the metadata log, and virtual time.
"""

import argparse
import asyncio
import logging
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from ottla.broker.node import inspection
from ottla.broker.partitions.partitions import Partitions
from ottla.client.admin import Admin
from ottla.client.cluster import ClientSettings, Cluster
from ottla.model.types import NodeId
from ottla.simulation.invariants.replica_checks import newest
from ottla.simulation.plans.plan import Plan
from ottla.simulation.plans.swarm import plan_for
from ottla.simulation.runs.running import new_loop, raise_first, run_world
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.nodes import Nodes
from ottla.simulation.world.trace import Trace

PARTITIONS_PER_TOPIC = 1_000
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 600.0
TURNS_MAX = 50_000_000


@dataclass
class Phase:
    """What one thing that happened to the cluster cost."""

    name: str
    records: int = 0
    log_bytes: int = 0
    network_bytes: int = 0
    events: int = 0
    virtual_seconds: float = 0.0
    cpu_seconds: float = 0.0


@dataclass
class Scale:
    plan: Plan
    nodes: Nodes
    network: SimulatedNetwork
    partitions: int
    phases: list[Phase] = field(default_factory=list)
    received: int = 0

    async def run(self, errors: list[BaseException]) -> None:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(errors))
            try:
                await self._all()
            finally:
                watching.cancel()

    async def _all(self) -> None:
        nodes = self.nodes
        await self._measure("start of an empty cluster", nodes.wait_serving)
        await self._measure("topics are created", self._create)
        victim = NodeId(len(nodes.machines))

        async def lose_one() -> None:
            nodes.machines[victim].kill(down_ms=10**9)
            await self._until(lambda: not self._led_by(victim))

        await self._measure("a broker is lost", lose_one)

        async def restart_all() -> None:
            for machine in nodes.all:
                machine.kill(down_ms=100)
            await nodes.wait_serving()
            await self._until(self._is_settled)

        await self._measure("all nodes are killed and start", restart_all)

    async def _measure(self, name: str, work: Callable[[], object]) -> None:
        loop, trace = self.network.loop, self.network.trace
        before = (self._end(), self._bytes(), self.received, trace.events, loop.time())
        cpu = time.process_time()
        await work()  # type: ignore[misc]
        await self._until(self._is_settled)
        phase = Phase(
            name,
            records=self._end() - before[0],
            log_bytes=self._bytes() - before[1],
            network_bytes=self.received - before[2],
            events=trace.events - before[3],
            virtual_seconds=loop.time() - before[4],
            cpu_seconds=time.process_time() - cpu,
        )
        self.phases.append(phase)
        print(line(phase), flush=True)

    async def _create(self) -> None:
        cluster = Cluster(
            self.nodes.addresses,
            network=self.network.host("admin"),
            clock=VirtualClock(self.network.loop),
            source=Random(1),
            settings=ClientSettings(request_ms_max=120_000, deadline_ms=600_000),
        )
        admin = Admin(cluster)
        for number in range(self.partitions // PARTITIONS_PER_TOPIC):
            await admin.create_topic(f"topic-{number}", partitions=PARTITIONS_PER_TOPIC)
        cluster.close()

    async def _until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                await asyncio.sleep(POLL_SECONDS)
                if is_so():
                    return

    def _is_settled(self) -> bool:
        """Everybody who serves knows all that is committed."""
        serving = [broker for _, broker in self.nodes.serving()]
        offsets = {broker.image.offset for broker in serving}
        return len(offsets) == 1 and any(broker.quorum.is_leader for broker in serving)

    def _led_by(self, node: NodeId) -> int:
        """As whoever knows least has it."""
        broker = min((b for _, b in self.nodes.serving()), key=lambda b: b.image.offset)
        topics = broker.image.topics_by_name.values()
        return sum(one.leader == node for topic in topics for one in topic.partitions.values())

    def _end(self) -> int:
        broker = newest(self.nodes)
        return broker.image.offset if broker is not None else 0

    def _bytes(self) -> int:
        view = inspection.quorum(newest(self.nodes))
        return view.log_size_bytes if view is not None else 0

    async def _watch(self, errors: list[BaseException]) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            raise_first(errors)
            self.nodes.supervise()

    def end(self) -> None:
        self.nodes.end()


def line(phase: Phase) -> str:
    return (
        f"| {phase.name} | {phase.records:,} | {phase.log_bytes / 1e6:.1f} MB "
        f"| {phase.network_bytes / 1e6:.1f} MB | {phase.events:,} "
        f"| {phase.virtual_seconds:.2f} s | {phase.cpu_seconds:.1f} s |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=30)
    parser.add_argument("--partitions", type=int, default=30_000)
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.scale", *sys.argv[1:]])
    logging.disable(logging.CRITICAL)
    for name in ("load", "apply", "delete_moved"):
        setattr(Partitions, name, lambda *_: None)  # Nothing is hosted: see above.
    plan = replace(plan_for(1, arguments.brokers), settings={"ottla.rebalance.enable": "false"})
    loop = new_loop()
    loop.turns_max = TURNS_MAX
    trace = Trace(lambda: loop.now_ns)
    network = SimulatedNetwork(loop, Random("scale"), trace)
    scale = Scale(plan, Nodes(plan, loop, network), network, arguments.partitions)
    note = trace.note

    def count(what: str, data: bytes | bytearray | memoryview = b"") -> None:
        scale.received += len(data)
        note(what, data)

    trace.note = count  # type: ignore[method-assign]
    print("| what happens | records | metadata log | network | events | virtual time | CPU |")
    print("|---|---|---|---|---|---|---|")
    run_world(scale, plan, loop, trace, replay=" ".join(sys.argv))
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
