"""Cuts of power, one round after the other, while clients are at work."""

import time

from tests.chaos.faults import Nemesis, Plan, wait_until
from tests.chaos.images import Images
from tests.chaos.nodes import Nodes

SERVED_OPERATIONS = 400  # So many show that service is back after a round,
SERVED_SECONDS_MAX = 40.0
ROUND_SECONDS = (1.0, 6.0)  # and then it is so long until the next cut.
DARK_SECONDS = (0.2, 4.0)
# So long the two others need until they do without the paused one, and then some acknowledgements.
ALONE_SECONDS = 14.0
TURNED_SECONDS = 12.0


class PowerCuts:
    def __init__(self, nemesis: Nemesis, images: Images) -> None:
        self._nemesis = nemesis
        self._nodes = nemesis.nodes
        self._images = images
        self._chance = nemesis.chance

    def run(self, rounds: int, *, with_all: bool) -> None:
        """The order that is known to split others is a round in four."""
        for number in range(rounds):
            self._wait_served()
            wait_until(time.monotonic() + self._chance.uniform(*ROUND_SECONDS))
            if number % 4 == 3:
                self._nemesis.do(self._in_turn())
            elif with_all and number % 2 == 0:
                self._nemesis.do(self._cut(self._nodes.ids))
            else:
                self._nemesis.do(self._cut([self._chance.choice(self._nodes.ids)]))

    def _wait_served(self) -> None:
        deadline = time.monotonic() + SERVED_SECONDS_MAX
        wanted = self._nemesis.count_operations() + SERVED_OPERATIONS
        while self._nemesis.count_operations() < wanted and time.monotonic() < deadline:
            time.sleep(0.1)

    def _cut(self, node_ids: list[int]) -> Plan:
        who = f"node {node_ids[0]}" if len(node_ids) == 1 else "all nodes at once"
        return Plan(
            "power loss",
            node_ids,
            f"cut the power of {who}",
            self._chance.uniform(*DARK_SECONDS),
            lambda: cut_power(self._nodes, self._images, node_ids),
            lambda: self._nodes.start(*node_ids),
        )

    def _in_turn(self) -> Plan:
        """B sleeps while A and C acknowledge; C loses power, B wakes, and A sleeps.

        B lacks records and C may: neither may lead before A is back.
        """
        first, second, third = self._chance.sample(self._nodes.ids, 3)

        def begin() -> None:
            self._nodes.pause(second)
            wait_until(time.monotonic() + ALONE_SECONDS)
            cut_power(self._nodes, self._images, [third])
            self._nodes.resume(second)
            self._nodes.pause(first)
            self._nodes.start(third)

        return Plan(
            "power loss",
            [first, second, third],
            f"pause {second}, cut the power of {third}, wake {second} and pause {first}",
            TURNED_SECONDS,
            begin,
            lambda: self._nodes.resume(first),
        )


def cut_power(nodes: Nodes, images: Images, node_ids: list[int]) -> None:
    """At one instant for all of them; their disks come back as they are, without processes."""
    for node_id in node_ids:
        nodes.pause(node_id)  # So that no acknowledgement can leave after the cut.
    for node_id in node_ids:
        images.lose_power(node_id)
    nodes.kill(*node_ids)
    for node_id in node_ids:
        images.restore_power(node_id)
