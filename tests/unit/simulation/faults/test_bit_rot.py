from dataclasses import replace

import pytest

from ottla.broker.partitions import scrubber
from ottla.model.types import NodeId
from ottla.simulation.faults.bit_rot import BitRot
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.plans.swarm_additions import HOUSEKEEPING
from ottla.simulation.runs import run
from ottla.simulation.runs.run import Failure, World, simulate
from tests.unit.simulation.small import small_cluster


def rotten_plan(seed: int = 1) -> Plan:
    plan = small_cluster(seed, Rates(bit_rot=5.0))
    return replace(
        plan,
        records_per_second=100.0,
        value_bytes_max=400,
        settings=plan.settings | HOUSEKEEPING,
        topic_configs={"internal.segment.bytes": "4096"},
    )


def test_a_damaged_replica_is_fetched_again_and_no_client_sees_the_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worlds: list[World] = []
    seen: list[set[NodeId]] = []
    scrub = BitRot._scrub

    def look(self: BitRot) -> None:
        seen.append(self.holders)
        scrub(self)

    monkeypatch.setattr(BitRot, "_scrub", look)
    report = simulate(1, rotten_plan(), arrange=worlds.append)
    assert report.faults["bit_rot"] > 0
    assert {len(holders) for holders in seen} == {1}
    assert worlds[0].bit_rot.holders == set()


def test_damage_that_the_scrubber_does_not_find_fails_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scrubber, "check_batches", lambda file, position, end, *_: end)
    monkeypatch.setattr(run, "HEAL_SECONDS_MAX", 10.0)  # It is not found later either.
    with pytest.raises(Failure, match="after the end"):
        simulate(1, rotten_plan())
