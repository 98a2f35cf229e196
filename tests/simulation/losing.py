"""A group that does everything once, by a timetable, while its coordinator is lost at one step.

Three places: a static member that comes back, one that leaves and is followed by another, and one
that joins late and crashes. Whatever the coordinator was doing when it was lost, the promises hold
and the group comes to rest.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

from ottla.groups.placement import OFFSETS_TOPIC
from ottla.simulation.clients.group_member import Fenced
from ottla.simulation.clients.group_workload import GroupWorkload, leave, stop
from ottla.simulation.plans.group_plan import GroupPlan, Kind
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.plans.swarm import with_groups
from ottla.simulation.runs.run import World, simulate
from tests.simulation.plans import busy_plan

# When each life begins and ends, by place; the last ones go on.
LIVES = (
    ((0.0, 1.5), (1.6, None)),
    ((0.05, 1.9), (2.0, None)),
    ((0.4, 0.8), (2.2, None)),
)
LEAVING = 1  # Only at this place do members say farewell.
DOWN_MS = 50


class Timetable(GroupWorkload):
    is_begun = False
    fenced = 0

    def begin(self, group: asyncio.TaskGroup) -> None:
        self.is_begun = True
        super().begin(group)

    async def _take_part(self, group: GroupPlan, number: int) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        for starts, ends in LIVES[number]:
            await asyncio.sleep(max(begin + starts - loop.time(), 0))
            chance = Random(f"{number}/{starts}")
            until = math.inf if ends is None else begin + ends
            while not self.is_settled and loop.time() < until:
                await self._live(group, number, chance, until)

    async def _live(self, group: GroupPlan, number: int, chance: Random, until: float) -> None:
        """One life until its time is over, or until it is fenced.

        As in Kafka, the member id that a static member gets during a rebalance is in the log only
        after the rebalance. If the coordinator is lost before, the log names the member id before
        that one, and fences the member.
        """
        loop = asyncio.get_running_loop()
        member = self.new_member(group, number, chance)
        self.members[group.name][number] = member
        living = loop.create_task(member.live())
        while not living.done() and not self.is_settled and loop.time() < until:
            await asyncio.wait([living], timeout=0.05)
        if living.done():
            with suppress(Fenced):
                living.result()
            self.fenced += 1
            assert self.fenced == 1, "the coordinator is lost once"
        else:
            await stop(living)
            if number == LEAVING and until < math.inf:
                await leave(member)
        member.end()

    async def _meddle(self, group: GroupPlan) -> None:
        pass


@dataclass
class Loss:
    """Lose the coordinator at a certain append of its log, in a certain way."""

    at: int
    how: str  # "torn": half of it is written, "written": all, and nobody told; "told": they are.
    appends: int = 0

    def arrange(self, world: World) -> None:
        world.groups = Timetable(world.plan, world.group_history, world.connect)
        world.nodes.all[0].disk.on_step = self._stepped(world)

    def _stepped(self, world: World) -> Callable[[str, str], None]:
        machine = world.nodes.all[0]

        def stepped(operation: str, path: str) -> None:
            if operation != "append" or f"/{OFFSETS_TOPIC}-" not in path:
                return
            if not path.endswith(".log"):
                return
            self.appends += 1
            if self.appends != self.at:
                return
            if self.how == "torn":
                machine.disk.crash_at = machine.disk.operations + 1
            elif self.how == "written":
                machine.kill(DOWN_MS)
            else:
                asyncio.get_running_loop().call_soon(machine.kill, DOWN_MS)

        return stepped


class LossAtMessage:
    """Lose the coordinator when it has just received something."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.messages = 0

    def arrange(self, world: World) -> None:
        self.groups = world.groups = Timetable(world.plan, world.group_history, world.connect)
        self.machine = world.nodes.all[0]

    def hear(self, line: str) -> None:
        if f":{self.machine.host}>" not in line or " receives " not in line:
            return
        if self.groups.is_begun and not self.groups.is_settled:
            self.messages += 1
            if self.messages == self.at:
                asyncio.get_running_loop().call_soon(self.machine.kill, DOWN_MS)


def lose_at_message(kind: Kind, at: int) -> int:
    """Run it; how many messages there were."""
    loss = LossAtMessage(at)
    simulate(at, plan_of(kind), loss.hear, arrange=loss.arrange)
    return loss.messages


def lose(kind: Kind, at: int, how: str) -> int:
    """Run it; how many appends there were."""
    loss = Loss(at, how)
    simulate(at, plan_of(kind), arrange=loss.arrange)
    return loss.appends


def plan_of(kind: Kind) -> Plan:
    group = GroupPlan(
        name=kind.value,
        kind=kind,
        members=len(LIVES),
        static=1,
        session_ms=500,
        rebalance_ms=800,
        heartbeat_ms=150,
        commit_ms=400,
        is_cooperative=False,
        calm_seconds=1.0,
    )
    plan = replace(
        busy_plan(1, Rates(), brokers=1),
        producers=(),
        consumers=0,
        settings={"auto.create.topics.enable": "false"},
        is_restarted=True,
    )
    settings = {"group.initial.rebalance.delay.ms": "100", "offsets.topic.num.partitions": "1"}
    plan = with_groups(plan, (group,))
    return replace(plan, rates=Rates(), seconds=2.5, settings=plan.settings | settings)
