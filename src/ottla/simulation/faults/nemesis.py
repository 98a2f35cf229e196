"""The faults of a run: each kind at its own rate, from its own randomness.

Faults do not ask whether the cluster can bear them, but for one: where records are not synced
before they are acknowledged, no node loses power whose records no other node keeps. A single
broker that does not sync may, and what it acknowledged is forgotten then.
"""

import asyncio
import contextlib
import errno
from collections.abc import Awaitable, Callable
from random import Random

from ottla.model.types import NodeId
from ottla.simulation.plans.plan import Plan
from ottla.simulation.world.loop import MILLISECOND
from ottla.simulation.world.machine import CAPACITY_BYTES, Machine
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.nodes import Nodes

OPERATIONS_UNTIL_CRASH_MAX = 40
FAILING_OPERATIONS = ("append", "append", "sync", "read", "truncate", "rename", "open")
CUT_MS_MAX = 6_000
PAUSE_MS_MAX = 6_000
DOWN_MS_MAX = 2_000


class Nemesis:
    def __init__(
        self,
        plan: Plan,
        nodes: Nodes,
        network: SimulatedNetwork,
        keepers: Callable[[], list[set[NodeId]]],
        forget_unsynced: Callable[[], None],
        damaged: Callable[[], set[NodeId]],
    ) -> None:
        """`keepers`: for each state of a partition, its in-sync and eligible replicas.

        `damaged`: nodes whose records cannot replace those of others.
        `forget_unsynced` is called when a power loss may have taken acknowledged records.
        """
        self.counts: dict[str, int] = {}
        self._plan = plan
        self._nodes = nodes
        self._network = network
        self._keepers = keepers
        self._forget_unsynced = forget_unsynced
        self._damaged = damaged
        self._forgetful: dict[NodeId, int] = {}  # Who lost power, and in which start.
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Do harm until `stop`."""
        harms: dict[str, Callable[[Random], Awaitable[None]]] = {
            "reset": self._reset,
            "clog": self._clog,
            "kill": self._kill,
            "power_loss": self._cut_power,
            "blackout": self._cut_all_power,
            "clean_restart": self._restart,
            "pause": self._pause,
            "partition": self._partition,
            "one_way": self._cut_one_way,
            "lonely_client": self._cut_off_client,
            "slow_link": self._slow_down,
            "disk_full": self._fill_disk,
            "disk_error": self._fail_disk,
            "clock_jump": self._set_clock,
        }
        async with asyncio.TaskGroup() as group:
            for name, harm in harms.items():
                if rate := getattr(self._plan.rates, name):
                    group.create_task(self._repeat(name, rate, harm))

    def stop(self) -> None:
        """No more harm; what was broken is whole again."""
        self._over.set()
        self._network.heal()
        for machine in self._nodes.all:
            machine.disk.heal()
            machine.disk.crash_at = None
            machine.resume()

    async def _repeat(
        self, name: str, rate: float, harm: Callable[[Random], Awaitable[None]]
    ) -> None:
        chance = Random(f"{name}/{self._plan.seed}")
        while True:
            await self._sleep(chance.expovariate(rate))
            if self._over.is_set():
                return
            self.counts[name] = self.counts.get(name, 0) + 1
            await harm(chance)

    async def _sleep(self, seconds: float) -> None:
        """For so long, or until it is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()

    def _one(self, chance: Random) -> Machine:
        return chance.choice(self._nodes.all)

    async def _reset(self, chance: Random) -> None:
        self._network.reset_some(self._one(chance).host, chance.choice((0.2, 1.0)))

    async def _clog(self, chance: Random) -> None:
        duration_ns = chance.randrange(10, 3_000) * MILLISECOND
        self._network.clog(self._one(chance).host, duration_ns)

    async def _kill(self, chance: Random) -> None:
        """Between two events, or inside a disk operation that comes soon."""
        number = chance.choice(list(self._nodes.machines))
        machine, may_die = self._nodes.machines[number], not self._is_last_keeper(number)
        if chance.random() < 0.5:
            operations = chance.randint(1, OPERATIONS_UNTIL_CRASH_MAX)
            if may_die:
                machine.disk.crash_at = machine.disk.operations + operations
        else:
            down_ms = chance.randrange(10, DOWN_MS_MAX)
            if may_die:
                machine.kill(down_ms)

    async def _cut_power(self, chance: Random) -> None:
        number = chance.choice(list(self._nodes.machines))
        down_ms = chance.randrange(10, DOWN_MS_MAX)
        if self._plan.is_synced or self._may_lose_power(number):
            self._lose_power(number, down_ms)
        elif self._plan.may_lose_acknowledged:
            # Answers on their way may tell of lost records: they must not be counted later.
            self._network.reset_all(self._nodes.machines[number].host)
            self._lose_power(number, down_ms)
            await asyncio.sleep(0.005)
            self._forget_unsynced()

    async def _cut_all_power(self, chance: Random) -> None:
        for number in self._nodes.machines:
            self._lose_power(number, chance.randrange(10, DOWN_MS_MAX))

    def _lose_power(self, number: NodeId, down_ms: int) -> None:
        machine = self._nodes.machines[number]
        self._forgetful[number] = machine.starts
        self._network.power_off(machine.host)
        machine.cut_power(down_ms)

    def _may_lose_power(self, number: NodeId) -> bool:
        """Whoever lost power before counts again when it has come back, and holds everything."""
        self._note_returned()
        if self._plan.rates.reassignment and self._forgetful:
            return False  # Someone may move everything to just those two.
        gone = {number, *self._down(), *self._damaged()}
        return all(keepers - gone for keepers in self._keepers())

    def _is_last_keeper(self, number: NodeId) -> bool:
        """True if `number` alone serves records that another node may have lost with its power.

        A dead process leaves every ISR at once. With `min.insync.replicas=1` it is not eligible
        then, and the ISR is left to brokers whose power loss is not detected yet.
        """
        if self._plan.is_synced:
            return False
        self._note_returned()
        gone, forgetful = {number, *self._down()}, {*self._forgetful} - {number}
        return any(
            number in keepers and keepers & forgetful and keepers <= gone
            for keepers in self._keepers()
        )

    def _down(self) -> set[NodeId]:
        """Nodes that do not serve, or soon will not: others may be left alone in an ISR."""
        return {
            number
            for number, machine in self._nodes.machines.items()
            if machine.broker is None or machine.disk.crash_at is not None
        }

    def _note_returned(self) -> None:
        for other, starts in list(self._forgetful.items()):
            machine = self._nodes.machines[other]
            if machine.starts > starts and machine.broker is not None:
                del self._forgetful[other]

    async def _restart(self, chance: Random) -> None:
        await self._one(chance).stop(chance.randrange(10, 500))

    async def _pause(self, chance: Random) -> None:
        machine = self._one(chance)
        machine.pause()
        await self._sleep(chance.randrange(10, PAUSE_MS_MAX) / 1_000)
        machine.resume()

    async def _partition(self, chance: Random) -> None:
        hosts = self._nodes.hosts
        chance.shuffle(hosts)
        split = chance.randrange(1, len(hosts))
        duration_ns = chance.randrange(100, CUT_MS_MAX) * MILLISECOND
        self._network.cut(hosts[:split], hosts[split:], duration_ns)
        self._network.cut(hosts[split:], hosts[:split], duration_ns)
        await self._sleep(duration_ns / 1e9)

    async def _cut_one_way(self, chance: Random) -> None:
        one, other = chance.sample(self._nodes.hosts, 2)
        self._network.cut([one], [other], chance.randrange(100, CUT_MS_MAX) * MILLISECOND)

    async def _cut_off_client(self, chance: Random) -> None:
        client, node = chance.choice(self._clients()), self._one(chance).host
        duration_ns = chance.randrange(100, CUT_MS_MAX) * MILLISECOND
        if chance.random() < 0.7:
            self._network.cut([client], [node], duration_ns)
        if chance.random() < 0.7:
            self._network.cut([node], [client], duration_ns)

    def _clients(self) -> list[str]:
        clients = [f"producer-{number}" for number in range(len(self._plan.producers))]
        clients += [f"consumer-{number}" for number in range(self._plan.consumers)]
        return clients or ["group-producer"]

    async def _slow_down(self, chance: Random) -> None:
        one, other = chance.sample(self._nodes.hosts, 2)
        delay_ns = chance.randrange(10, 400) * MILLISECOND
        self._network.slow_down(one, other, delay_ns, chance.randrange(5_000) * MILLISECOND)

    async def _fill_disk(self, chance: Random) -> None:
        disk = self._one(chance).disk
        disk.capacity_bytes = disk.used_bytes + chance.randrange(0, 20_000)
        await self._sleep(chance.uniform(0.1, 3.0))
        disk.capacity_bytes = CAPACITY_BYTES

    async def _fail_disk(self, chance: Random) -> None:
        """One operation fails; a directory that went offline comes back by a restart."""
        machine = self._one(chance)
        part = f"{chance.choice(machine.directories)}/"
        machine.disk.fail(chance.choice(FAILING_OPERATIONS), errno.EIO, path_contains=part)
        await self._sleep(chance.uniform(0.5, 2.0))
        machine.disk.heal()
        machine.kill(chance.randrange(10, 500))

    async def _set_clock(self, chance: Random) -> None:
        """The wall clock is put right, and so jumps: forward or back."""
        machine = self._one(chance)
        machine.clock.skew_ms = max(0, machine.clock.skew_ms + chance.randrange(-20_000, 50_000))
