"""One run: the brokers of a cluster, or a single one, its clients and its faults, from one seed.

First the faults of the plan, with every client at work. Then everything heals: within a bounded
time every client must come to its end, every node serve, and every replica be in sync. What is in
the logs must be what the history allows, and the same on every replica.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from ottla.client.cluster import ClientSettings, Cluster
from ottla.model.types import TopicPartition
from ottla.simulation.clients.group_workload import GroupWorkload
from ottla.simulation.clients.hostile_workload import HostileWorkload
from ottla.simulation.clients.keyed_workload import KeyedWorkload
from ottla.simulation.clients.workload import Workload
from ottla.simulation.faults.bit_rot import BitRot
from ottla.simulation.faults.changes import Changes
from ottla.simulation.faults.features import FeatureChanges
from ottla.simulation.faults.moves import Moves
from ottla.simulation.faults.nemesis import Nemesis
from ottla.simulation.history.group_history import GroupHistory
from ottla.simulation.history.history import Violation, check_final, check_trimmed
from ottla.simulation.history.recorded_history import RecordedHistory
from ottla.simulation.invariants.group_invariants import GroupInvariants, group_limits
from ottla.simulation.invariants.known_metadata import Key, KnownMetadata
from ottla.simulation.invariants.quorum_invariants import QuorumInvariants
from ottla.simulation.invariants.replica_checks import check_alike, unhealthy
from ottla.simulation.invariants.replica_invariants import ReplicaInvariants
from ottla.simulation.plans.plan import Plan
from ottla.simulation.plans.swarm import plan_for
from ottla.simulation.runs.running import Failure, new_loop, raise_first, run_world
from ottla.simulation.world.clock import VirtualClock
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.nodes import Nodes
from ottla.simulation.world.resources import Resources, resources_of
from ottla.simulation.world.trace import Trace

__all__ = ["Failure", "Report", "World", "simulate"]

HEAL_SECONDS_MAX = 90.0  # After the last fault, until everything is as it should be.
WATCH_SECONDS = 0.005
REST_SECONDS = 5.0  # Until idle brokers hold only what they hold while idle.


@dataclass(frozen=True, slots=True)
class Report:
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


def simulate(
    seed: int,
    plan: Plan | None = None,
    listener: Callable[[str], None] | None = None,
    arrange: Callable[["World"], None] | None = None,
    replay: str | None = None,
) -> Report:
    """Run a seed, or another plan of it; raises Failure if something happened that must not.

    `arrange` may change the world before it begins; `replay` is the command of this run.
    """
    plan = plan or plan_for(seed)
    loop = new_loop()
    trace = Trace(lambda: loop.now_ns)
    trace.listener = listener
    world = World(plan, loop, trace)
    if arrange is not None:
        arrange(world)
    again = f"ottla simulate --brokers {plan.brokers} --seed {seed}"
    run_world(world, plan, loop, trace, replay=replay or again)
    return world.report()


class World:
    def __init__(self, plan: Plan, loop: VirtualLoop, trace: Trace) -> None:
        self.plan = plan
        self.history = RecordedHistory(now_ns=lambda: loop.now_ns)
        self.network = SimulatedNetwork(loop, Random(f"network/{plan.seed}"), trace)
        self.network.link.delay_ns_mean = plan.delay_ns_mean
        self.nodes = Nodes(plan, loop, self.network)
        self.workload = Workload(plan, self.history, self.connect)
        self.changes = Changes(self.workload, self.connect)
        self.group_history = GroupHistory(lambda: loop.now_ns, is_delayed=plan.is_delayed)
        self.groups = GroupWorkload(plan, self.group_history, self.connect)
        self.keyed = KeyedWorkload(plan, self.connect)
        self.hostile = HostileWorkload(plan, self.nodes, self.network, self.connect)
        self.moves = Moves(plan, self.nodes, self.workload, self.connect)
        self.features = FeatureChanges(plan, self.connect)
        self.metadata = KnownMetadata(self.nodes)
        self.bit_rot = BitRot(plan, self.nodes, self.metadata, self.workload)
        self.nemesis = Nemesis(
            plan,
            self.nodes,
            self.network,
            self.metadata.keepers,
            self._forget_unsynced,
            lambda: self.bit_rot.holders,
        )
        self.quorum_invariants = QuorumInvariants(self.nodes)
        self.replica_invariants = ReplicaInvariants(
            self.nodes, self.metadata, self.history.trims, plan.retention_bytes
        )
        self.group_invariants = GroupInvariants(
            self.nodes, self.group_history, self.metadata, *group_limits(plan.settings)
        )
        self.metadata.on_unclean = self._elected_uncleanly
        self.network.on_sending = self._note_sending
        self.history.committed_end = self.replica_invariants.committed_end
        self.group_history.committed_end = self.replica_invariants.committed_end
        self.workload.look = self.replica_invariants.check
        self.group_history.look = self.group_invariants.check
        loop.on_turn = self._turn_ended
        self._healed_at = self._well_at = 0.0
        self._held_at_first: dict[str, Resources] = {}
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
                else:
                    await asyncio.sleep(REST_SECONDS)
                    self._check_held(self._resources(), self._held_at_first)
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
                if self.plan.keyed_producers:
                    await self.keyed.create_topic()
                if self.plan.hostile_clients:
                    await self.hostile.create_topics()
        except TimeoutError:
            raise Violation("no topics can be made in the beginning") from None
        self._held_at_first = self._resources()

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
                all_.create_task(workload.watch_latest())
                all_.create_task(workload.replace_topics())
                all_.create_task(workload.grow_topics())
                self.keyed.begin(all_)
                self.hostile.begin(all_)
                if plan.rates.bit_rot:
                    all_.create_task(self.bit_rot.run())
                self.changes.begin(all_)
                self.moves.begin(all_)
                self.features.begin(all_)
                if plan.groups:
                    self.groups.begin(all_)
                    all_.create_task(self.changes.shrink_offsets_log())
                await asyncio.sleep(plan.seconds)
                self.nemesis.stop()
                self.bit_rot.is_over = self.moves.is_over = self.features.is_over = True
                await harm
                self._healed_at = self._loop.time()
                self._trace.note("healed")
                await self._wait_healthy()
                await self._wait_acknowledged()
                self._well_at = self._loop.time()
                workload.is_over = self.groups.is_over = self.keyed.is_over = True
                self.hostile.stop()
                await self.groups.wait_settled()
        except TimeoutError:
            ills = "; ".join(unhealthy(self.nodes))
            state = ills or f"{self.groups.unrest()}clients still wait"
            raise Violation(f"{state}, {HEAL_SECONDS_MAX} s after the end") from None

    async def _wait_healthy(self) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not unhealthy(self.nodes) and not self.bit_rot.holders:
                return

    async def _wait_acknowledged(self) -> None:
        """What is sent now must be written: the cluster works again."""
        before = self.history.answers
        while self.plan.producers and self.history.answers <= before:  # noqa: ASYNC110
            await asyncio.sleep(WATCH_SECONDS)

    async def _wait_alike(self) -> None:
        while True:
            if not check_alike(self.nodes):
                return
            await asyncio.sleep(WATCH_SECONDS)

    async def _restart(self) -> None:
        """Each node stops cleanly and comes back, one after the other: nothing changes by that."""
        await asyncio.sleep(REST_SECONDS)
        held = self._resources()
        try:
            async with asyncio.timeout(HEAL_SECONDS_MAX):
                for machine in self.nodes.all:
                    await machine.stop()
                    await self._wait_healthy()
        except TimeoutError:
            state = "; ".join(unhealthy(self.nodes))
            raise Violation(f"a rolling restart does not end: {state}") from None
        await asyncio.sleep(REST_SECONDS)
        self._check_held(held, self._resources())

    def _check_held(self, held: dict[str, Resources], fresh: dict[str, Resources]) -> None:
        for host, mine in held.items():
            if excess := mine.excess(fresh[host]):
                raise Violation(f"{host} held {', '.join(excess)}")

    def _resources(self) -> dict[str, Resources]:
        nodes = [machine for machine in self.nodes.all if machine.broker is not None]
        return {node.host: resources_of(node, self.network, self._loop) for node in nodes}

    async def _audit(self) -> None:
        self._trace.note("audit")
        try:
            async with asyncio.timeout(HEAL_SECONDS_MAX):
                logs = await self.workload.read_all()
                topics = await self.workload.list_topics()
                await self.changes.audit()
                await self.features.audit()
                await self.groups.audit()
                await self.keyed.audit()
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
        self.metadata.look()

    def _note_sending(self, host: str) -> None:
        self.replica_invariants.note_sending(host)
        if self.plan.groups and self.plan.is_delayed:
            self.group_invariants.note_sending(host)

    def _elected_uncleanly(self, place: TopicPartition, key: Key, epoch: int) -> None:
        """The last known leader may be elected, too: that loses nothing that is checked here."""
        if place.topic in self.changes.unclean:
            self._trace.note(f"unclean election of {place} in epoch {epoch}")
            self.history.elected_uncleanly(place)
            self.replica_invariants.elected_uncleanly(key, epoch)

    def _forget_unsynced(self) -> None:
        self.history.forget_unsynced()
        self.replica_invariants.forget()

    async def _watch(self, errors: list[BaseException]) -> None:
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            raise_first(errors)
            self.replica_invariants.check()
            self.group_invariants.check()
            self._check_turns()
            self.nodes.supervise()

    def _check_turns(self) -> None:
        for machine in self.nodes.all:
            for turn in machine.costs.long_turns:
                raise Violation(f"a long turn of {turn}")

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

    def _faults(self) -> dict[str, int]:
        counts = self.nemesis.counts | self.moves.counts | self.features.counts
        return counts | ({"bit_rot": self.bit_rot.count} if self.bit_rot.count else {})

    def end(self) -> None:
        self.nodes.end()

    def report(self) -> Report:
        return Report(
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
            faults=dict(sorted(self._faults().items())),
        )
