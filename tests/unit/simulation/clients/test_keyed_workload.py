from dataclasses import replace

import pytest

from ottla.simulation.plans.plan import Plan, without
from ottla.simulation.runs.run import World, simulate
from tests.unit.simulation.small import small_plan


def keyed_plan(brokers: int = 1) -> Plan:
    plan = small_plan(1, brokers=brokers)
    settings = plan.settings | {"log.cleaner.backoff.ms": "100"}
    return replace(plan, keyed_producers=2, settings=settings)


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_compacted_topic_keeps_the_newest_record_of_each_key(brokers: int) -> None:
    worlds: list[World] = []
    simulate(1, keyed_plan(brokers), arrange=worlds.append)
    history = worlds[0].keyed.history
    assert history.passes > 3
    assert len(history.sent) > 20
    assert any(send.value is None for send in history.sent.values())


def test_a_plan_without_keyed_producers_has_no_compacted_topic() -> None:
    worlds: list[World] = []
    simulate(1, without(replace(keyed_plan(), seconds=0.2), ("keyed",)), arrange=worlds.append)
    assert worlds[0].keyed.history.passes == 0
