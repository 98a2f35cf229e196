from dataclasses import replace

import pytest

from ottla.simulation.clients.hostile_client import TOPIC_PREFIX
from ottla.simulation.clients.hostile_workload import TOPICS
from ottla.simulation.plans.plan import without
from ottla.simulation.runs.run import World, simulate
from tests.unit.simulation.small import small_plan


@pytest.mark.parametrize("brokers", [1, 3])
def test_good_clients_work_beside_hostile_ones(brokers: int) -> None:
    worlds: list[World] = []
    plan = replace(small_plan(1, brokers=brokers), hostile_clients=2)
    report = simulate(1, plan, arrange=worlds.append)
    assert report.acknowledged > 10
    assert worlds[0].hostile.streams > 10


def test_a_plan_without_hostile_clients_has_none() -> None:
    worlds: list[World] = []
    plan = replace(small_plan(), hostile_clients=2, seconds=0.2)
    simulate(1, without(plan, ("hostile",)), arrange=worlds.append)
    assert worlds[0].hostile.streams == 0


def test_hostile_topics_are_known_by_their_names() -> None:
    assert all(topic.startswith(TOPIC_PREFIX) for topic in TOPICS)
