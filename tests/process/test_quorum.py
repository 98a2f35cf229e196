"""Three controllers under kill -9: one of them always decides, and nothing decided is lost."""

import time
from pathlib import Path

from ottla.client.blocking import Client
from tests.process.quorum_nodes import Nodes, running

# A second at rest, with room for a machine that has other things to do.
NEW_CONTROLLER_SECONDS_MAX = 5


def create(nodes: Nodes, number: int, name: str) -> float:
    """Returns how long it took."""
    began = time.monotonic()
    with Client(nodes.all[number].bootstrap) as client:
        client.run(client.admin.create_topic(name, partitions=1, replication_factor=2))
    return time.monotonic() - began


def test_a_controller_that_is_killed_is_replaced_and_its_decisions_stay(tmp_path: Path) -> None:
    with running(tmp_path) as nodes:
        create(nodes, 1, "first")
        known = ["first"]
        for round_ in range(3):
            leader = nodes.leader()
            others = [number for number in nodes.all if number != leader]
            nodes.all[leader].kill()
            name = f"round{round_}"
            assert create(nodes, others[0], name) < NEW_CONTROLLER_SECONDS_MAX
            known.append(name)
            assert nodes.leader() in others
            nodes.start(leader)
            nodes.wait_topics(leader, *known)


def test_all_at_once_lose_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as nodes:
        create(nodes, 2, "t")
        for node in nodes.all.values():
            node.kill()
        nodes.start()
        for number in nodes.all:
            nodes.wait_topics(number, "t")
        create(nodes, 3, "u")


def test_a_clean_stop_hands_over_and_a_lonely_node_still_stops(tmp_path: Path) -> None:
    with running(tmp_path) as nodes:
        leader = nodes.leader()
        assert nodes.all[leader].stop() == 0
        one, other = (number for number in nodes.all if number != leader)
        assert nodes.leader(one) in (one, other)
        assert nodes.all[other].stop() == 0
        assert nodes.all[one].stop() == 0  # Nobody is left who could let it go.
        nodes.all[one].log_file.unlink()
        nodes.all[one].start(wait=False)
        while "looking for the active controller" not in nodes.all[one].log_tail():
            time.sleep(0.05)
        assert nodes.all[one].is_alive  # It waits for the others,
        assert nodes.all[one].stop() == 0  # and still does what it is told.
