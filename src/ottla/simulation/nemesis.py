"""What goes wrong during a run: each kind of fault at its own rate, from its own randomness."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from random import Random

from ottla.simulation.history import History
from ottla.simulation.loop import MILLISECOND
from ottla.simulation.machine import CAPACITY_BYTES, HOST, Machine
from ottla.simulation.network import SimulatedNetwork
from ottla.simulation.plan import Plan

OPERATIONS_UNTIL_CRASH_MAX = 40
FAILING_OPERATIONS = ("append", "append", "sync", "read", "truncate", "rename", "open")


class Nemesis:
    def __init__(
        self, plan: Plan, machine: Machine, network: SimulatedNetwork, history: History
    ) -> None:
        self.counts: dict[str, int] = {}
        self._plan = plan
        self._machine = machine
        self._network = network
        self._history = history
        self._is_over = False

    async def run(self) -> None:
        """Do harm until `stop`."""
        rates = self._plan.rates
        kinds: list[tuple[str, float, Callable[[Random], Awaitable[None]]]] = [
            ("reset", rates.reset, self._reset),
            ("clog", rates.clog, self._clog),
            ("kill", rates.kill, self._kill),
            ("power_loss", rates.power_loss, self._cut_power),
            ("clean_restart", rates.clean_restart, self._restart),
            ("disk_full", rates.disk_full, self._fill_disk),
            ("disk_error", rates.disk_error, self._fail_disk),
            ("clock_jump", rates.clock_jump, self._set_clock),
        ]
        async with asyncio.TaskGroup() as group:
            for name, rate, harm in kinds:
                if rate:
                    group.create_task(self._repeat(name, rate, harm))

    def stop(self) -> None:
        """No more harm; what was broken is whole again."""
        self._is_over = True
        disk = self._machine.disk
        disk.heal()
        disk.crash_at = None

    async def _repeat(
        self, name: str, rate: float, harm: Callable[[Random], Awaitable[None]]
    ) -> None:
        chance = Random(f"{name}/{self._plan.seed}")
        while True:
            await asyncio.sleep(chance.expovariate(rate))
            if self._is_over:
                return
            self.counts[name] = self.counts.get(name, 0) + 1
            await harm(chance)

    async def _reset(self, chance: Random) -> None:
        self._network.reset_some(HOST, chance.choice((0.2, 1.0)))

    async def _clog(self, chance: Random) -> None:
        self._network.clog(HOST, chance.randrange(10, 3_000) * MILLISECOND)

    async def _kill(self, chance: Random) -> None:
        """Between two events, or inside a disk operation that comes soon."""
        disk = self._machine.disk
        if chance.random() < 0.5:
            disk.crash_at = disk.operations + chance.randint(1, OPERATIONS_UNTIL_CRASH_MAX)
        else:
            self._machine.kill(chance.randrange(10, 1_000))

    async def _cut_power(self, chance: Random) -> None:
        down_ms = chance.randrange(10, 1_000)
        if self._plan.is_synced:
            self._machine.cut_power(down_ms)
            return
        # What is on its way may tell of records that are lost now: it must not be counted later.
        self._network.reset_some(HOST, 1.0)
        self._machine.cut_power(down_ms)
        await asyncio.sleep(0.005)
        self._history.forget_unsynced()

    async def _restart(self, chance: Random) -> None:
        await self._machine.stop(chance.randrange(10, 500))

    async def _fill_disk(self, chance: Random) -> None:
        disk = self._machine.disk
        disk.capacity_bytes = disk.used_bytes + chance.randrange(0, 20_000)
        await asyncio.sleep(chance.uniform(0.1, 3.0))
        disk.capacity_bytes = CAPACITY_BYTES

    async def _fail_disk(self, chance: Random) -> None:
        """One operation fails; a directory that went offline comes back by a restart."""
        operation = chance.choice(FAILING_OPERATIONS)
        part = f"/data-{chance.randrange(self._plan.log_dirs)}/"
        self._machine.disk.fail(operation, errno.EIO, path_contains=part)
        await asyncio.sleep(chance.uniform(0.5, 2.0))
        self._machine.disk.heal()
        self._machine.kill(chance.randrange(10, 500))

    async def _set_clock(self, chance: Random) -> None:
        """The wall clock is put right, and so jumps."""
        self._machine.clock.skew_ms += chance.randrange(1_000, 50_000)
