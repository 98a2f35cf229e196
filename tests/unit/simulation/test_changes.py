import pytest

from ottla.simulation.history import Violation
from ottla.simulation.plan import Rates
from ottla.simulation.run import Failure, World, simulate
from tests.unit.simulation.small import group_plan, small_plan


def test_records_are_deleted_while_others_read_and_write() -> None:
    worlds: list[World] = []
    simulate(2, small_plan(2, Rates(record_deletion=5.0)), arrange=worlds.append)
    trims = worlds[0].history.trims.values()
    assert any(trim.done for trim in trims)
    assert all(trim.done <= trim.asked for trim in trims)


def test_configs_are_altered_and_stay_so() -> None:
    worlds: list[World] = []
    simulate(2, small_plan(2, Rates(config_change=5.0)), arrange=worlds.append)
    assert worlds[0].changes.configs["topic-0"]


def test_a_config_that_is_not_what_was_confirmed_is_found() -> None:
    def arrange(world: World) -> None:
        world.changes.configs["topic-0"] = {"segment.ms": "12345"}

    with pytest.raises(Failure, match="was confirmed") as failure:
        simulate(2, small_plan(2), arrange=arrange)
    assert isinstance(failure.value.__cause__, Violation)


def test_the_log_of_groups_is_kept_small() -> None:
    told: list[str] = []
    simulate(2, group_plan(2), told.append)
    assert any("__consumer_offsets" in line and ".index" in line for line in told), "it rolls"
