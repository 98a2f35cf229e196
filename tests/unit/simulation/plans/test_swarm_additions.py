import re
from dataclasses import replace

import pytest

from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.client.offsets import READ_COMMITTED
from ottla.model.types import Offset
from ottla.simulation.clients.workload import READ
from ottla.simulation.history.history import PIPELINED
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.plans.swarm import plan_for
from ottla.simulation.plans.swarm_additions import in_racks, with_unclean_elections
from ottla.simulation.runs.run import Failure, World, simulate
from tests.simulation.plans import busy_plan
from tests.unit.simulation.small import small_cluster

SEEDS = range(200)


def test_a_share_of_the_clusters_has_bit_rot_and_sealed_segments() -> None:
    rotten = [plan for seed in SEEDS if (plan := plan_for(seed, 3)).rates.bit_rot]
    assert len(SEEDS) / 20 < len(rotten) < len(SEEDS) / 3
    for plan in rotten:
        assert plan.topic_configs["internal.segment.bytes"] == "4096"
        assert plan.settings["log.initial.task.delay.ms"] == "100"
        assert not plan.has_sick_disk


def test_a_single_broker_has_no_bit_rot() -> None:
    assert not any(plan_for(seed, 1).rates.bit_rot for seed in SEEDS)


def test_a_share_of_all_runs_has_hostile_clients() -> None:
    for brokers in (1, 3):
        count = sum(plan_for(seed, brokers).hostile_clients > 0 for seed in SEEDS)
        assert len(SEEDS) / 10 < count < len(SEEDS) / 3


def test_a_share_of_all_runs_changes_features_and_some_clusters_begin_old() -> None:
    for brokers in (1, 3):
        plans = [plan for seed in SEEDS if (plan := plan_for(seed, brokers)).rates.feature_change]
        assert len(SEEDS) / 10 < len(plans) < len(SEEDS) / 2
        versions = {plan.metadata_version for plan in plans}
        assert versions == ({30} if brokers == 1 else {30, 29, 25, 23, 20})
        for plan in plans:
            assert plan.metadata_version > 20 or plan.is_synced or not plan.rates.power_loss


def test_a_share_of_all_runs_has_a_compacted_topic_that_is_cleaned() -> None:
    for brokers in (1, 3):
        keyed = [plan for seed in SEEDS if (plan := plan_for(seed, brokers)).keyed_producers]
        assert len(SEEDS) / 20 < len(keyed) < len(SEEDS) / 3
        assert not any(plan.may_lose_acknowledged for plan in keyed)


def test_a_share_of_the_clusters_has_consumers_that_read_followers_in_their_rack() -> None:
    racked = [plan for seed in SEEDS if (plan := plan_for(seed, 3)).is_racked]
    assert len(SEEDS) / 10 < len(racked) < len(SEEDS) / 3
    for plan in racked:
        assert plan.settings["replica.selector.class"].endswith("RackAwareReplicaSelector")
    assert not any(plan_for(seed, 1).is_racked for seed in SEEDS)


def test_a_follower_that_shows_what_is_not_committed_is_seen_by_consumers_in_racks(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL")

    def end(self: ReplicatedPartition) -> Offset:
        return self.high_watermark if self.is_leader else self.log.end_offset

    monkeypatch.setattr(ReplicatedPartition, "last_stable_offset", property(end))
    monkeypatch.setattr(
        "ottla.simulation.clients.workload.READ", replace(READ, isolation=READ_COMMITTED)
    )
    plan = small_cluster(5)
    simulate(5, plan)
    with pytest.raises(Failure, match="I8"):
        simulate(5, in_racks(plan))


def test_a_share_of_the_clusters_switches_unclean_election_on_and_off() -> None:
    plans = [plan for seed in SEEDS if (plan := plan_for(seed, 3)).rates.unclean_change]
    assert len(SEEDS) / 20 < len(plans) < len(SEEDS) / 3
    assert not any(plan.rates.bit_rot or PIPELINED in plan.producers for plan in plans)
    assert not any(plan_for(seed, 1).rates.unclean_change for seed in SEEDS)


def test_without_leave_an_unclean_election_is_a_loss(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not every run has an unclean election after which records are missing."""
    caplog.set_level("CRITICAL")
    plans = [
        with_unclean_elections(replace(busy_plan(seed, Rates(kill=1.5)), seconds=8.0))
        for seed in range(1, 16)
    ]
    with monkeypatch.context() as unknown:
        unknown.setattr(World, "_elected_uncleanly", lambda *_: None)
        lost = next(plan for plan in plans if _loses(plan))
    simulate(lost.seed, lost)


def _loses(plan: Plan) -> bool:
    try:
        simulate(plan.seed, plan)
    except Failure as failure:
        return re.search(r"I2|lost|was read|Refused\(1,", str(failure)) is not None
    return False
