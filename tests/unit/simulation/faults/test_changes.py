import pytest

from ottla.client.admin import Admin, Operation, ResourceType
from ottla.simulation.history.history import Violation
from ottla.simulation.plans.plan import Rates
from ottla.simulation.runs.run import Failure, World, simulate
from tests.unit.simulation.small import group_plan, small_cluster, small_plan


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
    assert isinstance(failure.value.reason, Violation)


def test_the_log_of_groups_is_kept_small() -> None:
    told: list[str] = []
    simulate(2, group_plan(2), told.append)
    assert any("__consumer_offsets" in line and ".index" in line for line in told), "it rolls"


def test_min_insync_replicas_go_up_and_down(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds: list[World] = []
    asked: set[tuple[ResourceType, Operation]] = set()
    alter = Admin.alter_configs

    async def noted(self: Admin, kind: ResourceType, name: str, changes: list) -> None:  # type: ignore[type-arg]
        asked.add((kind, changes[0][0]))
        await alter(self, kind, name, changes)

    monkeypatch.setattr(Admin, "alter_configs", noted)
    simulate(2, small_cluster(2, Rates(min_isr_change=10.0)), arrange=worlds.append)
    topic, broker = ResourceType.TOPIC, ResourceType.BROKER
    assert asked == {
        (topic, Operation.SET),
        (topic, Operation.DELETE),
        (broker, Operation.SET),
    }


def test_topics_get_more_partitions_which_are_written_and_read() -> None:
    for brokers in (1, 3):
        worlds: list[World] = []
        plan = small_plan(2, Rates(partition_growth=5.0), brokers=brokers)
        simulate(2, plan, arrange=worlds.append)
        count = worlds[0].workload.partitions["topic-0"]
        assert count > plan.partitions
        assert {sent.topic_partition.partition for sent in worlds[0].history.sent.values()} == set(
            range(count)
        )
