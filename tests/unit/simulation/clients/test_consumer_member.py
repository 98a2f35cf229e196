from ottla.simulation.plans.group_plan import Kind
from ottla.simulation.plans.plan import Rates
from ottla.simulation.runs.run import World, simulate
from tests.unit.simulation.small import group_plan


def test_members_share_all_partitions_and_commit_what_they_read() -> None:
    worlds: list[World] = []
    plan = group_plan(6, Rates(reset=2.0), kinds=(Kind.CONSUMER,))
    simulate(6, plan, arrange=worlds.append)
    history = worlds[0].group_history
    assert history.commits > 10
    assert history.grants_made > len(worlds[0].groups.places)
