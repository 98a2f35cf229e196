"""A leader of three nodes is killed or stopped: the longest gap of a producer at full speed.

The producer is librdkafka's, idempotent, with acks=all and default settings, on one partition with
three replicas. The cluster is whole again before the next one dies. One cluster runs at a time.
"""

import time
from contextlib import nullcontext

from benchmarks.budgets import KAFKA, KILLS
from benchmarks.clusters import Cluster, until
from benchmarks.producer_gap import Member, Writer
from benchmarks.session import Session, rdkafka

CASES = {**KILLS, "clean-stop": "clean stop of a leader"}
ROUNDS_MAX = 3
KAFKA_ROUNDS = 1  # Each of its kills costs half a minute.
GROUPS_MAX = 50


def run(session: Session) -> None:
    for kind in session.kinds():
        cluster = session.new_cluster(kind)
        try:
            cluster.start()
            cluster.create_topic("warm-up", 3)
            letters = {"P": 3, "a": "all", "b": cluster.bootstrap}
            rdkafka("produce", cluster, "warm-up", session.options.warm_seconds / 3, **letters)
            cluster.delete_topic("warm-up")
            rounds = min(ROUNDS_MAX, session.options.rounds)
            for number in range(KAFKA_ROUNDS if kind.name == KAFKA else rounds):
                for case in CASES:
                    _measure(session, cluster, case, f"{case}-{number}")
        finally:
            cluster.stop()


def _measure(session: Session, cluster: Cluster, case: str, topic: str) -> None:
    controller = cluster.controller()
    others = [node for node in cluster.nodes if node != controller]
    victim, group = others[0], ""
    if case == "kill-controller":
        victim = controller
    elif case == "kill-coordinator":
        victim, group = _coordinator(cluster, topic, controller)
    cluster.create_topic(topic, 1, first=victim)
    one = {}
    with Writer(cluster.bootstrap, topic) as writer:
        with Member(cluster.bootstrap, group, topic) if group else nullcontext() as member:
            writer.until_it_goes_on()
            writer.watch()
            began = time.monotonic()
            if case == "clean-stop":
                cluster.nodes[victim].process.stop()
            else:
                cluster.kill(victim)
            writer.until_it_goes_on()
            if member is not None:
                one["consumer_gap_s"] = member.longest_gap(began)
        one["gap_s"] = writer.longest_gap()
    session.note((case, CASES[case], "gap_s"), cluster.name, one)
    cluster.nodes[victim].start()
    until(lambda: cluster.is_whole(topic))
    cluster.delete_topic(topic)


def _coordinator(cluster: Cluster, name: str, controller: int) -> tuple[int, str]:
    """A node that is not the controller, and a group that it coordinates."""
    for number in range(GROUPS_MAX):
        group = f"{name}-{number}"
        node = cluster.coordinator(group)
        if node != controller:
            return node, group
    raise SystemExit("the controller coordinates all groups")
