"""One run of a whole cluster: its nodes, its clients and its misfortunes, all from one seed.

First the faults of the plan, with every client at work. Then everything heals: within a bounded
time every client must come to its end, every node serve, and every replica be in sync. What is in
the logs must be what the history allows, and the same on every replica.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ottla.client.cluster import ClientSettings, Cluster
from ottla.simulation.changes import Changes
from ottla.simulation.clock import VirtualClock
from ottla.simulation.cluster_nemesis import ClusterNemesis
from ottla.simulation.cluster_plan import ClusterPlan, cluster_plan_for
from ottla.simulation.group_history import GroupHistory
from ottla.simulation.group_invariants import check_owners, coordinators
from ottla.simulation.group_workload import GroupWorkload
from ottla.simulation.history import Violation, check_final, check_trimmed
from ottla.simulation.loop import VirtualLoop
from ottla.simulation.moves import Moves
from ottla.simulation.network import SimulatedNetwork
from ottla.simulation.nodes import Nodes
from ottla.simulation.quorum_invariants import QuorumInvariants
from ottla.simulation.recorded_history import RecordedHistory
from ottla.simulation.replica_checks import check_alike, keepers, unhealthy
from ottla.simulation.replica_invariants import ReplicaInvariants
from ottla.simulation.running import new_loop, raise_first, run_world
from ottla.simulation.trace import Trace
from ottla.simulation.workload import Workload

HEAL_SECONDS_MAX = 90.0  # After the last fault, until everything is as it should be.
WATCH_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """What a run came to; two runs of one seed have the same."""

    seed: int
    digest: str
    events: int
    turns: int
    virtual_seconds: float
    healed_seconds: float  # From the last fault until all was well.
    starts: int
    sent: int
    acknowledged: int
    read: int
    commits: int  # Of offsets, by members of groups.
    faults: dict[str, int]


def simulate_cluster(
    seed: int,
    plan: ClusterPlan | None = None,
    listener: Callable[[str], None] | None = None,
    arrange: Callable[["ClusterWorld"], None] | None = None,
    replay: str | None = None,
) -> ClusterReport:
    """Run a seed; raises Failure if something happened that must not."""
    plan = plan or cluster_plan_for(seed)
    loop = new_loop()
    trace = Trace(lambda: loop.now_ns)
    trace.listener = listener
    world = ClusterWorld(plan, loop, trace)
    if arrange is not None:
        arrange(world)
    again = f"ottla simulate --brokers {plan.brokers} --seed {seed}"
    run_world(world, plan, loop, trace, replay=replay or again)
    return world.report()


class ClusterWorld:
    def __init__(self, plan: ClusterPlan, loop: VirtualLoop, trace: Trace) -> None:
        self.plan = plan
        self.history = RecordedHistory(now_ns=lambda: loop.now_ns)
        self.network = SimulatedNetwork(loop, Random(f"network/{plan.seed}"), trace)
        self.network.link.delay_ns_mean = plan.delay_ns_mean
        self.nodes = Nodes(plan, loop, self.network)
        self.workload = Workload(plan, self.history, self.connect)
        self.changes = Changes(self.workload, self.connect)
        self.group_history = GroupHistory(lambda: loop.now_ns)
        self.groups = GroupWorkload(plan, self.group_history, self.connect)
        self.moves = Moves(plan, self.nodes, self.workload, self.connect)
        self.nemesis = ClusterNemesis(plan, self.nodes, self.network, lambda: keepers(self.nodes))
        self.quorum_invariants = QuorumInvariants(self.nodes)
        self.replica_invariants = ReplicaInvariants(self.nodes)
        loop.on_turn = self._turn_ended
        self._healed_at = self._well_at = 0.0
        self._loop = loop
        self._trace = trace

    async def run(self, errors: list[BaseException]) -> None:
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(errors))
            try:
                await self._prepare()
                await self._work()
                await self._audit()
                if self.plan.is_restarted:
                    await self._restart()
                    await self._audit()
            finally:
                watching.cancel()
        raise_first(errors)

    async def _prepare(self) -> None:
        try:
            async with asyncio.timeout(HEAL_SECONDS_MAX):
                await self.nodes.wait_serving()
                await self.workload.create_topics()
                if self.plan.groups:
                    await self.groups.create_topics()
        except TimeoutError:
            raise Violation("no topics can be made in the beginning") from None

    async def _work(self) -> None:
        """All clients under faults; then heal, and wait for all to end."""
        plan, workload = self.plan, self.workload
        try:
            async with (
                asyncio.timeout(plan.seconds + HEAL_SECONDS_MAX),
                asyncio.TaskGroup() as all_,
            ):
                harm = all_.create_task(self.nemesis.run())
                for number, guarantee in enumerate(plan.producers):
                    all_.create_task(workload.produce(number, guarantee))
                for number in range(plan.consumers):
                    all_.create_task(workload.consume(number))
                all_.create_task(workload.replace_topics())
                self.changes.begin(all_)
                self.moves.begin(all_)
                if plan.groups:
                    self.groups.begin(all_)
                await asyncio.sleep(plan.seconds)
                self.nemesis.stop()
                await harm
                self._healed_at = self._loop.time()
                self._trace.note("healed")
                await self._wait_healthy()
                await self._wait_acknowledged()
                self._well_at = self._loop.time()
                workload.is_over = self.groups.is_over = True
                await self.groups.wait_settled()
        except TimeoutError:
            ills = "; ".join(unhealthy(self.nodes))
            state = ills or f"{self.groups.unrest()}clients still wait"
            raise Violation(f"{HEAL_SECONDS_MAX} s after the end: {state}") from None

    async def _wait_healthy(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not unhealthy(self.nodes):
                return

    async def _wait_acknowledged(self) -> None:
        """What is sent now must be written: the cluster works again."""
        before = self.history.answers
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self.history.answers > before:
                return

    async def _wait_alike(self) -> None:
        while True:
            if not check_alike(self.nodes):
                return
            await asyncio.sleep(WATCH_SECONDS)

    async def _restart(self) -> None:
        """Each node stops cleanly and comes back, one after the other: nothing changes by that."""
        try:
            async with asyncio.timeout(HEAL_SECONDS_MAX):
                for machine in self.nodes.all:
                    await machine.stop()
                    await self._wait_healthy()
        except TimeoutError:
            state = "; ".join(unhealthy(self.nodes))
            raise Violation(f"a rolling restart does not end: {state}") from None

    async def _audit(self) -> None:
        self._trace.note("audit")
        try:
            async with asyncio.timeout(HEAL_SECONDS_MAX):
                logs = await self.workload.read_all()
                topics = await self.workload.list_topics()
                await self.changes.audit()
                await self.groups.audit()
                await self._wait_alike()
        except TimeoutError:
            lagging = "; ".join(check_alike(self.nodes))
            raise Violation(f"there is no audit in the end; {lagging}") from None
        check_final(self.history, logs)
        check_trimmed(self.history, logs)
        self.history.judge(logs)
        if self.plan.is_delayed:
            # One that was asked for twice may have been made again after it was deleted.
            topics -= self.workload.deleted
        if topics != set(self.workload.topics):
            raise Violation(f"there are topics {topics}, not {set(self.workload.topics)}")

    def _turn_ended(self) -> None:
        self.quorum_invariants.check()
        self.replica_invariants.look_at_metadata()

    def _check_owners(self) -> None:
        if self.plan.groups:
            for _, broker in self.nodes.serving():
                for _, coordinator in coordinators(broker):
                    for group in coordinator.consumers.by_id.values():
                        check_owners(group)

    async def _watch(self, errors: list[BaseException]) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            raise_first(errors)
            self.replica_invariants.check()
            self._check_owners()
            self.nodes.supervise()

    def connect(self, name: str, settings: ClientSettings) -> Cluster:
        source = Random(f"{name}/{self.plan.seed}")
        addresses = list(self.nodes.addresses)
        source.shuffle(addresses)
        return Cluster(
            addresses,
            network=self.network.host(name),
            clock=VirtualClock(self._loop),
            source=source,
            settings=settings,
        )

    def end(self) -> None:
        self.nodes.end()

    def report(self) -> ClusterReport:
        return ClusterReport(
            seed=self.plan.seed,
            digest=self._trace.digest(),
            events=self._trace.events,
            turns=self._loop.turns,
            virtual_seconds=self._loop.time(),
            healed_seconds=self._well_at - self._healed_at,
            starts=sum(machine.starts for machine in self.nodes.all),
            sent=len(self.history.sent),
            acknowledged=self.history.acknowledgements,
            read=self.history.reads,
            commits=self.group_history.commits,
            faults=dict(sorted({**self.nemesis.counts, **self.moves.counts}.items())),
        )
