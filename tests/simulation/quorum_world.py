"""A quorum of pure machines in virtual time: no loop, no sockets, no files, all from one seed.

Requests and answers are lost, late, doubled and out of order; nodes crash between any two effects
and lose what they did not sync, are paused, or come back with an empty disk; voters come and go.
After every effect the promises of `quorum_rules` are checked.
"""

# ruff: noqa: ANN401

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from typing import Any

from ottla.model.types import Monotonic, NodeId
from ottla.protocol.messages import add_raft_voter, api_versions, remove_raft_voter
from ottla.quorum.machine import Quorum
from ottla.quorum.voters import Address, ReplicaKey, Voter, Voters
from tests.simulation.quorum_node import CLUSTER, Entry, Node
from tests.simulation.quorum_rules import Rules, Violation


class Exchange:
    """A request on its way, and its answer."""

    def __init__(
        self, world: "World", source: Node, to: NodeId, target: NodeId, request: Any
    ) -> None:
        self.world, self.source, self.to, self.target = world, source, to, target
        self.request = request
        self.machine: Quorum | None = source.quorum  # None once it is over.

    def arrive(self) -> None:
        world = self.world
        if not world.is_linked(self.source.key.id, self.target):
            return
        node = world.nodes[self.target]
        if node.machine is None:
            world.later(1, lambda: self.fail(is_closed=True))
        elif isinstance(self.request, api_versions.Request):
            feature = api_versions.SupportedFeatureKey("kraft.version", 0, 1)
            self.answered(node.life, api_versions.Response(supported_features=[feature]))
        else:
            ticket = next(world.numbers)
            node.tickets[ticket] = partial(self.answered, node.life)
            node.happened(partial(node.machine.received, ticket, self.request))

    def answered(self, life: int, response: Any) -> None:
        assert self.world.nodes[self.target].life == life, "the dead do not answer"
        self.world.rules.replied(self.world.nodes[self.target], self.request, response)
        is_linked = self.world.is_linked(self.source.key.id, self.target)
        if is_linked and not self.world.drops():
            self.world.later(self.world.delay(), lambda: self.deliver(response))

    def deliver(self, response: Any) -> None:
        machine, self.machine = self.machine, None
        if machine is not None and self.source.machine is machine:
            self.source.happened(partial(machine.answered, self.to, self.request, response))

    def fail(self, *, is_closed: bool) -> None:
        machine, self.machine = self.machine, None
        if machine is not None and self.source.machine is machine:
            failed = partial(machine.failed, self.to, self.request, is_closed=is_closed)
            self.source.happened(failed)


@dataclass
class Faults:
    lost: float = 0.03
    closed: float = 0.02
    doubled: float = 0.02
    delay_ms_max: int = 60
    crash_every_ms: int = 1000
    partition_every_ms: int = 2500
    snapshot_every_ms: int = 900
    change_every_ms: int = 4000
    pause_every_ms: int = 0
    wipe_every_ms: int = 0
    disk_ms_max: int = 0
    propose_every_ms: int = 25
    batch_max: int = 5

    @classmethod
    def none(cls) -> "Faults":
        return cls(0, 0, 0, 5, 0, 0, 0, 0)

    @classmethod
    def swarm(cls, random: Random) -> "Faults":
        """Some faults are absent, the others rare or frequent: up to ten times as much."""

        def every(mean_ms: int) -> int:
            return random.choice([0, 3 * mean_ms, mean_ms, mean_ms // 3, mean_ms // 10])

        return cls(
            lost=random.choice([0, 0.01, 0.03, 0.1, 0.3]),
            closed=random.choice([0, 0.02, 0.06, 0.2]),
            doubled=random.choice([0, 0.02, 0.2]),
            delay_ms_max=random.choice([1, 6, 60, 300, 900]),
            crash_every_ms=every(1000) or 5000,
            partition_every_ms=every(2500),
            snapshot_every_ms=every(900),
            change_every_ms=every(3000),
            pause_every_ms=every(2000),
            wipe_every_ms=random.choice([0, 0, 4000]),
            disk_ms_max=random.choice([0, 0, 5, 50, 300]),
            propose_every_ms=random.choice([5, 25, 100, 1000]),
            batch_max=random.choice([1, 2, 5, 50]),
        )


@dataclass
class World:
    seed: int
    size: int = 3
    spare: int = 1
    faults: Faults = field(default_factory=Faults)
    observers: int = 0  # Brokers, which never vote.

    @classmethod
    def swarm(cls, seed: int) -> "World":
        """One of many kinds of worlds: 1 to 5 voters, spare controllers, observers, faults."""
        random = Random(seed * 7919 + 1)
        size = random.choice([1, 2, 3, 3, 3, 4, 5])
        spare, observers = random.randrange(3), random.randrange(2)
        return cls(seed, size, spare, Faults.swarm(random), observers)

    def __post_init__(self) -> None:
        self.now = Monotonic(0)
        self.random = Random(self.seed)
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.numbers = count()
        self.nodes: dict[NodeId, Node] = {}
        self.rules = Rules(self.nodes)
        self.cut_off: set[NodeId] = set()
        self.is_healed = False
        self.under_way: list[Exchange] = []
        controllers = self.size + self.spare
        keys = [self.key(NodeId(n)) for n in range(1, controllers + self.observers + 1)]
        voters = Voters.of(self.voter(key) for key in keys[: self.size])
        self.controllers = [key.id for key in keys[:controllers]]
        for key in keys:
            is_controller = key.id in self.controllers
            self.nodes[key.id] = Node(self, key, voters, is_controller=is_controller)

    @property
    def committed(self) -> list[Entry]:
        return self.rules.committed

    @staticmethod
    def key(node: NodeId) -> ReplicaKey:
        return ReplicaKey(node, bytes([node]) * 16)

    @staticmethod
    def voter(key: ReplicaKey) -> Voter:
        return Voter(key.id, key.directory_id, {"CONTROLLER": Address(str(key.id), 1)})

    # Time.

    def later(self, delay_ms: int, event: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + delay_ms, next(self.numbers), event))

    def run(self, until_ms: int) -> None:
        nodes = list(self.nodes.values())
        while self.now < until_ms:
            due = max(min(node.deadline for node in nodes), self.now + 1)
            if self.events and self.events[0][0] < due:
                due = self.events[0][0]
            self.now = Monotonic(max(self.now, min(due, until_ms)))
            while self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
            for node in nodes:
                if node.deadline <= self.now and node.machine is not None and not node.is_paused:
                    node.happened(node.machine.tick)

    def every(self, mean_ms: int, event: Callable[[], None]) -> None:
        def again() -> None:
            if not self.is_healed:
                event()
                self.later(1 + int(self.random.expovariate(1 / mean_ms)), again)

        if mean_ms:
            self.later(1 + int(self.random.expovariate(1 / mean_ms)), again)

    # The network.

    def is_linked(self, one: NodeId, other: NodeId) -> bool:
        return self.is_healed or (one in self.cut_off) == (other in self.cut_off)

    def send(self, source: Node, to: NodeId, target: NodeId, request: Any) -> None:
        exchange = Exchange(self, source, to, target, request)
        self.under_way = [e for e in self.under_way if e.machine is not None] + [exchange]
        self.later(2000, lambda: exchange.fail(is_closed=False))
        if not self.is_healed and self.random.random() < self.faults.closed:
            self.later(self.delay(), lambda: exchange.fail(is_closed=True))
        if not self.drops():
            self.later(self.delay(), exchange.arrive)
        if not self.is_healed and self.random.random() < self.faults.doubled:
            self.later(self.delay() * 5, exchange.arrive)

    def drops(self) -> bool:
        return not self.is_healed and self.random.random() < self.faults.lost

    def delay(self) -> int:
        return 1 + self.random.randrange(1 if self.is_healed else self.faults.delay_ms_max)

    def disk_delay(self) -> int:
        if self.is_healed or not self.faults.disk_ms_max:
            return 0
        return self.random.randrange(self.faults.disk_ms_max)

    # Misfortunes.

    def may_crash(self) -> bool:
        return not self.is_healed and bool(self.faults.crash_every_ms)

    def crash(self, node: Node) -> None:
        if node.machine is None:
            return
        node.crash()
        self.later(self.random.randrange(1500), lambda: self.restart(node))

    def restart(self, node: Node) -> None:
        if node.machine is None:
            node.start()

    def partition(self) -> None:
        nodes = sorted(self.nodes)
        some = self.random.sample(nodes, self.random.randrange(len(nodes)))
        self.cut_off = set(some) if self.random.random() < 0.6 else set()

    def pause(self) -> None:
        """A process that stands still: what it is sent waits for it."""
        node = self.nodes[self.random.choice(sorted(self.nodes))]
        node.paused_until = Monotonic(self.now + self.random.choice([50, 500, 3000]))
        self.later(node.paused_until - self.now, node.pump)

    def wipe(self) -> None:
        """A controller's disk is replaced, if the voters that are left can go on without it."""
        node = self.nodes[self.random.choice(self.controllers)]
        machines = [n.machine for n in self.nodes.values()]
        if any(machine is None or machine.change is not None for machine in machines):
            return
        sets = {id(voters): voters for n in self.nodes.values() for voters in n.voter_sets()}
        for voters in sets.values():
            everyone = voters.by_id.values()
            intact = [voter for voter in everyone if self._is_intact(voter)]
            left = [voter for voter in intact if voter.id != node.key.id]
            if len(intact) < len(everyone) or len(left) < voters.majority:
                return  # One at a time.
        node.wipe()
        self.later(self.random.randrange(1500), lambda: self.restart(node))

    def _is_intact(self, voter: Voter) -> bool:
        return self.nodes[voter.id].key.directory_id == voter.directory_id

    def change_voters(self) -> None:
        """An operator removes the voter whose disk is gone, or any, or adds a controller."""
        leaders = [n for n in self.nodes.values() if n.is_leader and not n.is_paused]
        if not leaders:
            return
        leader = self.random.choice(leaders)
        voters = leader.quorum.voters
        node = self.nodes[self.random.choice(self.controllers)]
        gone = [voter for voter in voters.by_id.values() if not self._is_intact(voter)]
        request: Any
        if gone:
            request = remove_raft_voter.Request(CLUSTER, gone[0].id, gone[0].directory_id)
        elif node.key.id in voters.by_id:
            request = remove_raft_voter.Request(CLUSTER, *node.key)
        else:
            where = [add_raft_voter.Listener("CONTROLLER", str(node.key.id), node.port)]
            request = add_raft_voter.Request(CLUSTER, 3000, *node.key, where)
        leader.happened(partial(leader.quorum.received, next(self.numbers), request))

    def propose(self) -> None:
        leaders = [n for n in self.nodes.values() if n.is_leader]
        if leaders:
            self.random.choice(leaders).propose(next(self.numbers))

    def crash_one(self) -> None:
        """Leaders are the more interesting victims."""
        leaders = [n for n in self.nodes.values() if n.is_leader]
        everyone = [self.nodes[node] for node in sorted(self.nodes)]
        self.crash(self.random.choice(leaders * 3 + everyone))

    def snapshot_one(self) -> None:
        self.nodes[self.random.choice(sorted(self.nodes))].snapshot()

    # The whole story.

    def story(self, ms: int = 12_000) -> None:
        self.play(ms)
        self.heal()

    def play(self, ms: int) -> None:
        """Nothing but misfortune."""
        for node in self.nodes.values():
            self.later(self.random.randrange(300), partial(self.restart, node))
        self.every(self.faults.propose_every_ms, self.propose)
        self.every(self.faults.crash_every_ms, self.crash_one)
        self.every(self.faults.partition_every_ms, self.partition)
        self.every(self.faults.snapshot_every_ms, self.snapshot_one)
        self.every(self.faults.change_every_ms, self.change_voters)
        self.every(self.faults.pause_every_ms, self.pause)
        self.every(self.faults.wipe_every_ms, self.wipe)
        self.run(ms)

    def heal(self) -> None:
        """No more faults: soon there is a leader, it commits, and every node hears of it."""
        self.is_healed = True
        for node in self.nodes.values():
            node.paused_until = Monotonic(0)
            node.pump()
            self.restart(node)
        self.run(self.now + 10_000)
        leaders = [n for n in self.nodes.values() if n.is_leader]
        if len(leaders) != 1:
            raise Violation("liveness", f"{len(leaders)} leaders after all has healed")
        leaders[0].propose(-1)
        self.run(self.now + 3_000)
        if self.committed[-1].value != -1:
            raise Violation("liveness", "nothing is committed after all has healed")
        for node in self.nodes.values():
            if node.quorum.high_watermark != len(self.committed):
                raise Violation("liveness", f"{node.key.id} has not heard what is committed")
