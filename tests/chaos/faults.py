"""What is done to the nodes of a chaos run: every fault begins, lasts, and is healed."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from tests.chaos.nodes import Nodes
from tests.chaos.recorder import Recorder
from tests.chaos.wiring import CLIENTS, Link, Namespaces

PERIOD_SECONDS = 15.0
REST_SECONDS_MIN = 5.0  # From a heal to the next fault.
QUIET_SHARE = 0.25
KILLED_SECONDS = (0.5, 8.0)
PAUSED_SECONDS = (5.0, 30.0)
CUT_SECONDS = (5.0, 20.0)


@dataclass(slots=True)
class Fault:
    kind: str
    node_ids: list[int]
    what: str
    began_ns: int
    healed_ns: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """One fault to come; `begin` and `heal` do it."""

    kind: str
    node_ids: list[int]
    what: str
    seconds: float
    begin: Callable[[], None]
    heal: Callable[[], None]


class Nemesis:
    """Does one fault after the other, and writes down which."""

    def __init__(
        self,
        nodes: Nodes,
        chance: random.Random,
        recorder: Recorder,
        say: Callable[[str], None],
    ) -> None:
        self.faults: list[Fault] = []
        self.nodes = nodes
        self.chance = chance
        self.say = say
        self._recorder = recorder

    def count_operations(self) -> int:
        """How much clients have done so far."""
        return len(self._recorder.operations)

    def do(self, plan: Plan, end: float = math.inf) -> None:
        self.nodes.require_alive(self.nodes.ids)
        fault = Fault(plan.kind, plan.node_ids, plan.what, self._recorder.now_ns())
        self.faults.append(fault)
        self.say(f"{plan.what} for {plan.seconds:.1f} s")
        plan.begin()
        wait_until(min(end, time.monotonic() + plan.seconds))
        plan.heal()
        fault.healed_ns = self._recorder.now_ns()


class Chaos:
    """Kills, pauses and partitions, at random, for some time."""

    def __init__(self, nemesis: Nemesis, seconds: float) -> None:
        self._nemesis = nemesis
        self._nodes = nodes = nemesis.nodes
        self._chance = nemesis.chance
        self._seconds = seconds
        kinds: list[tuple[Callable[[], Plan], float]] = [
            (self._kill, 4),
            (self._kill_several, 1.5),
            (self._pause, 4),
            (self._restart, 1),
            (self._isolate, 2),
        ]
        if isinstance(nodes.wiring, Namespaces):
            kinds += [(self._cut_from_peers, 2), (self._cut_link, 2), (self._cut_one_way, 2)]
        self._kinds = kinds

    def run(self) -> None:
        """Faults one after the other, one period in four without; all is healed at the end."""
        end = time.monotonic() + self._seconds
        wait_until(min(end, time.monotonic() + REST_SECONDS_MIN))
        while time.monotonic() < end:
            next_at = time.monotonic() + PERIOD_SECONDS * self._chance.uniform(0.7, 1.3)
            if self._nemesis.faults and self._chance.random() < QUIET_SHARE:
                self._nemesis.say("quiet")
            else:
                self._nemesis.do(self._next(), end)
            wait_until(min(end, max(next_at, time.monotonic() + REST_SECONDS_MIN)))

    def _next(self) -> Plan:
        plans, weights = zip(*self._kinds, strict=True)
        (plan,) = self._chance.choices(plans, weights)
        made: Plan = plan()
        return made

    def _victim(self) -> int:
        return self._chance.choice(self._nodes.ids)

    def _kill(self) -> Plan:
        return self._killing([self._victim()])

    def _kill_several(self) -> Plan:
        count = self._chance.randint(2, len(self._nodes.ids))
        return self._killing(sorted(self._chance.sample(self._nodes.ids, count)))

    def _killing(self, node_ids: list[int]) -> Plan:
        return Plan(
            "kill -9",
            node_ids,
            f"kill -9 {_named(node_ids)}",
            self._chance.uniform(*KILLED_SECONDS),
            lambda: self._nodes.kill(*node_ids),
            lambda: self._nodes.start(*node_ids),
        )

    def _restart(self) -> Plan:
        node_id = self._victim()
        return Plan(
            "clean stop",
            [node_id],
            f"stop node {node_id} cleanly",
            self._chance.uniform(0.0, 3.0),
            lambda: self._nodes.stop(node_id),
            lambda: self._nodes.start(node_id),
        )

    def _pause(self) -> Plan:
        node_id = self._victim()
        return Plan(
            "SIGSTOP",
            [node_id],
            f"pause node {node_id}",
            self._chance.uniform(*PAUSED_SECONDS),
            lambda: self._nodes.pause(node_id),
            lambda: self._nodes.resume(node_id),
        )

    def _isolate(self) -> Plan:
        node_id = self._victim()
        return self._cutting(
            f"isolate node {node_id}",
            [node_id],
            lambda: self._nodes.wiring.isolate(node_id, self._nodes.pid(node_id)),
        )

    def _cut_from_peers(self) -> Plan:
        """Its clients still reach it, whatever it thinks that it leads."""
        node_id = self._victim()
        others = [other for other in self._nodes.ids if other != node_id]
        links = [link for other in others for link in ((node_id, other), (other, node_id))]
        return self._cutting_links(f"cut node {node_id} from its peers", [node_id], links)

    def _cut_link(self) -> Plan:
        """Each of the two still reaches the third."""
        one, other = sorted(self._chance.sample(self._nodes.ids, 2))
        links = [(one, other), (other, one)]
        return self._cutting_links(f"cut nodes {one} and {other} apart", [one, other], links)

    def _cut_one_way(self) -> Plan:
        source, target = self._chance.sample([CLIENTS, *self._nodes.ids], 2)
        names = [_named([side]) if side else "the clients" for side in (source, target)]
        hit = [side for side in (source, target) if side]
        return self._cutting_links(f"cut {names[0]} → {names[1]}", hit, [(source, target)])

    def _cutting_links(self, what: str, node_ids: list[int], links: list[Link]) -> Plan:
        wiring = self._nodes.wiring
        assert isinstance(wiring, Namespaces), "only they have links"
        is_silent = self._chance.random() < 0.5
        how = "silently" if is_silent else "by blackholes"
        return self._cutting(
            f"{what} {how}", node_ids, lambda: wiring.cut(links, is_silent=is_silent)
        )

    def _cutting(self, what: str, node_ids: list[int], begin: Callable[[], None]) -> Plan:
        seconds = self._chance.uniform(*CUT_SECONDS)
        return Plan("partition", node_ids, what, seconds, begin, self._nodes.wiring.heal)


def wait_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(min(left, 0.5))


def _named(node_ids: list[int]) -> str:
    if len(node_ids) == 1:
        return f"node {node_ids[0]}"
    return f"nodes {', '.join(map(str, node_ids[:-1]))} and {node_ids[-1]}"
