"""One run: a broker, its clients and its misfortunes in virtual time, all from one seed.

First the faults of the plan, with every client at work; then everything heals, all clients must
come to an end within a bounded time, and what is in the logs must be what the history allows.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ottla.client.cluster import ClientSettings, Cluster
from ottla.env.network import Address
from ottla.simulation.changes import Changes
from ottla.simulation.clock import VirtualClock
from ottla.simulation.group_history import GroupHistory
from ottla.simulation.group_invariants import GroupInvariants, group_limits
from ottla.simulation.group_workload import GroupWorkload
from ottla.simulation.history import History, Violation, check_final
from ottla.simulation.invariants import Invariants
from ottla.simulation.loop import VirtualLoop
from ottla.simulation.machine import HOST, PORT, Machine
from ottla.simulation.nemesis import Nemesis
from ottla.simulation.network import SimulatedNetwork
from ottla.simulation.plan import Plan, plan_for
from ottla.simulation.running import Failure, new_loop, raise_first, run_world
from ottla.simulation.trace import Trace
from ottla.simulation.workload import Workload

__all__ = ["Failure", "Report", "World", "simulate"]

HEAL_SECONDS_MAX = 90.0  # After the last fault, until every client has come to its end.
WATCH_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to; two runs of one seed have the same."""

    seed: int
    digest: str
    events: int
    virtual_seconds: float
    starts: int
    sent: int
    acknowledged: int
    read: int
    commits: int  # Of offsets, by members of groups.
    faults: dict[str, int]


def simulate(
    seed: int,
    plan: Plan | None = None,
    listener: Callable[[str], None] | None = None,
    arrange: Callable[["World"], None] | None = None,
) -> Report:
    """Run a seed; raises Failure if something happened that must not.

    `arrange` may change the world before it begins.
    """
    plan = plan or plan_for(seed)
    loop = new_loop()
    trace = Trace(lambda: loop.now_ns)
    trace.listener = listener
    world = World(plan, loop, trace)
    if arrange is not None:
        arrange(world)
    run_world(world, plan, loop, trace, replay=f"ottla simulate --seed {seed}")
    return world.report()


class World:
    def __init__(self, plan: Plan, loop: VirtualLoop, trace: Trace) -> None:
        self.plan = plan
        self.history = History()
        self.network = SimulatedNetwork(loop, Random(f"network/{plan.seed}"), trace)
        self.network.link.delay_ns_mean = plan.delay_ns_mean
        self.machine = Machine(plan, self.network, VirtualClock(loop))
        self.workload = Workload(plan, self.history, self._connect)
        self.nemesis = Nemesis(plan, self.machine, self.network, self.history)
        self.changes = Changes(self.workload, self._connect)
        self._invariants = Invariants(self.machine, self.history, plan.retention_bytes)
        self.workload.look = self._invariants.check
        self.group_history = GroupHistory(lambda: loop.now_ns)
        self.groups = GroupWorkload(plan, self.group_history, self._connect)
        self._group_invariants = GroupInvariants(
            self.machine, self.group_history, *group_limits(plan.settings)
        )
        self.group_history.look = self._group_invariants.check
        self._loop = loop
        self._trace = trace

    async def run(self, errors: list[BaseException]) -> None:
        await self._prepare()
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(errors))
            try:
                await self._work()
            finally:
                watching.cancel()
        await self._audit()
        await self.machine.stop()  # A clean stop and start must change nothing either.
        await self.machine.wait_serving()
        await self._audit()
        raise_first(errors)

    async def _prepare(self) -> None:
        try:
            async with asyncio.timeout(HEAL_SECONDS_MAX):
                await self.machine.wait_serving()
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
                if plan.groups:
                    self.groups.begin(all_)
                    all_.create_task(self.changes.shrink_offsets_log())
                await asyncio.sleep(plan.seconds)
                self.nemesis.stop()
                await harm
                await self.machine.wait_serving()
                workload.is_over = self.groups.is_over = True
                await self.groups.wait_settled()
        except TimeoutError:
            raise Violation(
                f"{self.groups.unrest()}clients still wait {HEAL_SECONDS_MAX} s after the end"
            ) from None

    async def _audit(self) -> None:
        self._trace.note("audit")
        try:
            async with asyncio.timeout(HEAL_SECONDS_MAX):
                logs = await self.workload.read_all()
                topics = await self.workload.list_topics()
                await self.groups.audit()
                await self.changes.audit()
        except TimeoutError:
            raise Violation("the logs cannot be read in the end") from None
        check_final(self.history, logs)
        if topics != set(self.workload.topics):
            raise Violation(f"there are topics {topics}, not {set(self.workload.topics)}")

    async def _watch(self, errors: list[BaseException]) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            raise_first(errors)
            self._invariants.check()
            self._group_invariants.check()
            self.machine.supervise()

    def _connect(self, name: str, settings: ClientSettings) -> Cluster:
        return Cluster(
            [Address(HOST, PORT)],
            network=self.network.host(name),
            clock=VirtualClock(self._loop),
            source=Random(f"{name}/{self.plan.seed}"),
            settings=settings,
        )

    def end(self) -> None:
        self.machine.end()

    def report(self) -> Report:
        return Report(
            seed=self.plan.seed,
            digest=self._trace.digest(),
            events=self._trace.events,
            virtual_seconds=self._loop.time(),
            starts=self.machine.starts,
            sent=len(self.history.sent),
            acknowledged=self.history.acknowledgements,
            read=self.history.reads,
            commits=self.group_history.commits,
            faults=dict(sorted(self.nemesis.counts.items())),
        )
