import contextlib

import pytest

from ottla.metadata.image.features import advertised
from ottla.model.errors import Damaged, FormatRefused
from ottla.protocol.messages import create_topics
from ottla.protocol.metadata_records import (
    FeatureLevelRecord,
)
from ottla.simulation.world.disk import Crashed
from tests.unit.broker.driving import (
    LOG,
    SEGMENT,
    Node,
    asked,
    created,
    deleted,
    formatted,
    names,
    run,
)


def test_what_was_answered_is_there_after_a_restart() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        await created(driver, "a", 3)
        await created(driver, "b")
        await deleted(driver, "b")
        await node.stopped(driver)
        again = await node.started()
        assert names(again) == ["a"]
        assert {p.leader for p in again.image.topics_by_name["a"].partitions.values()} == {1}

    run(work())


def test_every_start_begins_a_new_epoch() -> None:
    node = formatted()

    async def work() -> None:
        epochs = []
        for _ in range(3):
            driver = await node.started()
            epochs.append(driver.leader_epoch)
            driver.close()
        assert epochs == [1, 2, 3]

    run(work())


def test_damage_before_the_end_stops_the_start_and_cuts_nothing() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        await created(driver, "a")
        await created(driver, "b")
        driver.close()
        size = node.disk.size(SEGMENT)
        node.disk.flip_bit(SEGMENT, 200)
        with pytest.raises(Damaged) as damaged:
            node.driver().open()
        assert damaged.value.path == SEGMENT
        assert node.disk.size(SEGMENT) == size

    run(work())


def test_a_damaged_snapshot_stops_the_start() -> None:
    node = formatted()
    path = f"{LOG}/{0:020d}-{0:010d}.checkpoint"
    node.disk.flip_bit(path, 70)
    with pytest.raises(Damaged) as damaged:
        node.driver().open()
    assert damaged.value.path == path


def test_a_cluster_newer_than_us_is_refused_by_name() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        driver.commits.active.write_records([FeatureLevelRecord("metadata.version", 31)])
        await driver.commits.settle()
        driver.close()
        with pytest.raises(FormatRefused, match=r"metadata.version 31.*at most 30 \(4.3-IV0\)"):
            node.driver().open()

    run(work())


def test_features_that_are_not_served_are_kept_and_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        driver.commits.active.write_records([FeatureLevelRecord("share.version", 1)])
        await driver.commits.settle()
        driver.close()
        again = await node.started()
        assert again.image.features["share.version"] == 1
        assert advertised(again.image.features) == {"metadata.version": 30, "group.version": 1}

    run(work())
    assert "not served by this Ottla yet: share.version 1" in caplog.text


async def workload(node: Node, known: dict[str, bool]) -> None:
    """What is in `known` was answered: True for topics that are there, False for deleted ones."""
    driver = await node.started()
    for number in range(3):
        name = f"t{number}"
        await created(driver, name, 2)
        known[name] = True
        await driver.commits.snapshot_if_due()
    await deleted(driver, "t1")
    known["t1"] = False
    await node.stopped(driver)


def crashing_node(seed: int) -> Node:
    node = Node(seed, snapshot_after_bytes=700, retention_bytes=0)
    node.format()
    return node


def count_operations() -> tuple[int, int]:
    node = crashing_node(0)
    before = node.disk.operations
    run(workload(node, {}))
    return before, node.disk.operations


@pytest.mark.parametrize("is_power_lost", [False, True])
def test_a_crash_at_any_disk_operation_loses_nothing_that_was_answered(
    is_power_lost: bool,
) -> None:
    before, after = count_operations()
    assert after - before > 50
    for moment in range(before + 1, after + 1):
        node = crashing_node(moment)
        known: dict[str, bool] = {}
        node.disk.crash_at = moment
        with contextlib.suppress(Crashed):
            run(workload(node, known))
        if is_power_lost:
            node.disk.cut_power()
        else:
            node.disk.kill()
        check(node, known, moment)


def check(node: Node, known: dict[str, bool], moment: int) -> None:
    async def work() -> None:
        driver = await node.started()
        for name, is_there in known.items():
            topic = driver.image.topics_by_name.get(name)
            if is_there and name != "t1":  # Its deletion may be under way.
                assert topic is not None, f"{name} is lost by a crash at operation {moment}"
            if not is_there:
                assert topic is None, f"{name} is back after a crash at operation {moment}"
        for topic in driver.image.topics_by_name.values():
            assert sorted(topic.partitions) == [0, 1], "a topic is whole or not there"
        assert (await created(driver, "after")).topics[0].error_code == 0
        driver.close()

    run(work())


def test_two_runs_of_one_seed_write_the_same_bytes() -> None:
    files = []
    for _ in range(2):
        node = crashing_node(5)
        run(workload(node, {}))
        files.append({n: node.disk.read(f"{LOG}/{n}") for n in node.disk.list(LOG)})
    assert files[0] == files[1]


def test_a_driver_that_is_abandoned_leaves_its_files_as_they_are() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        await created(driver, "a")
        operations = node.disk.operations
        await driver.abandon()
        assert node.disk.operations == operations
        node.disk.kill()
        assert names(await node.started()) == ["a"]
        assert (await asked(await node.started(), create_topics.Request())).topics == []

    run(work())
