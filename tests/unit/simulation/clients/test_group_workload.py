from ottla.simulation.clients.group_workload import TOPICS
from ottla.simulation.plans.plan import Rates
from ottla.simulation.runs.run import World, simulate
from tests.unit.simulation.small import group_plan


def test_groups_come_to_rest_after_a_run() -> None:
    worlds: list[World] = []
    report = simulate(2, group_plan(2, Rates(kill=1.0)), arrange=worlds.append)
    groups = worlds[0].groups
    assert report.commits > 10
    assert groups.is_settled
    assert groups.unrest() == ""
    for members in groups.members.values():
        assert len(members) == 2


def test_what_keeps_a_group_from_resting_is_told() -> None:
    told: list[str] = []

    def ask(world: World) -> None:
        world.groups.is_settled = False
        told.append(world.groups.unrest())

    simulate(2, group_plan(2), arrange=ask)
    assert told[0].startswith("G4: groups do not come to rest")


def test_every_member_reads_every_topic() -> None:
    worlds: list[World] = []
    simulate(3, group_plan(3), arrange=worlds.append)
    groups = worlds[0].groups
    assert {place.topic for place in groups.places} == set(TOPICS)
    assert groups.history.grants_made > len(groups.places)
