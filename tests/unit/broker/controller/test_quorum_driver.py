import asyncio
import contextlib
import errno

import pytest

from ottla.broker.controller.metadata_log import FormatRefused
from ottla.broker.controller.quorum_driver import QuorumDriver
from ottla.metadata.image.delta import ImageDelta
from ottla.model.errors import Damaged, ErrorCode
from ottla.protocol.messages import create_topics
from ottla.protocol.metadata_records import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    TopicRecord,
)
from ottla.simulation.world.disk import Crashed
from tests.unit.broker.driving import LOG, SEGMENT, Node, asked, created, deleted, run


def formatted(**settings: object) -> Node:
    node = Node(**settings)
    node.format()
    return node


def names(driver: QuorumDriver) -> list[str]:
    return sorted(driver.image.topics_by_name)


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


def test_an_epoch_that_ends_before_a_write_begins_ends_nothing_else() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        answers: list[object] = []
        topic = create_topics.CreatableTopic("a", 1, 1)
        driver.ask(create_topics.Request([topic]), answers.append)
        settling = asyncio.get_running_loop().create_task(driver.settle())
        await asyncio.sleep(0)
        assert driver._committing is not None, "the write is about to begin"
        driver.ended(driver.leader_epoch)
        await settling
        assert [answer.code for answer in answers] == [ErrorCode.NOT_CONTROLLER]
        assert names(driver) == []
        driver.close()

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


def test_subscribers_hear_before_anyone_is_answered() -> None:
    node = formatted()
    heard: list[str] = []

    async def work() -> None:
        driver = await node.started()

        def changed(delta: ImageDelta) -> None:
            heard.extend(topic.name for topic in delta.created)
            assert "t" in driver.image.topics_by_name

        driver.subscribe(changed)
        topic = create_topics.CreatableTopic("t", 1, 1)
        driver.ask(create_topics.Request([topic]), lambda _: heard.append("answer"))
        assert heard == []
        await driver.settle()

    run(work())
    assert heard == ["t", "answer"]


def test_the_image_holds_only_what_is_synced() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        driver.ask(create_topics.Request([create_topics.CreatableTopic("t", 1, 1)]), print)
        assert "t" not in driver.image.topics_by_name
        node.disk.cut_power()
        again = await node.started()
        assert names(again) == []

    run(work())


def test_decisions_that_gather_are_written_in_one_batch() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        before = node.disk.operations
        for name in ("a", "b", "c"):
            driver.ask(create_topics.Request([create_topics.CreatableTopic(name, 1, 1)]), print)
        await driver.settle()
        assert names(driver) == ["a", "b", "c"]
        assert node.disk.operations == before + 2  # One write, one sync.

    run(work())


def test_a_running_driver_commits_by_itself_and_stops_when_told() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        async with asyncio.TaskGroup() as group:
            group.create_task(driver.run())
            topic = create_topics.CreatableTopic("t", 1, 1)
            response = await driver.submit(create_topics.Request([topic]))
            assert response.topics[0].error_code == 0
            driver.stop()
        assert names(driver) == ["t"]

    run(work())


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
def test_shortage_refuses_and_recovers_by_itself(error: int) -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        await created(driver, "a")
        node.disk.fail("append", error, path_contains=SEGMENT)
        refusal = await created(driver, "b")
        assert refusal.code == ErrorCode.KAFKA_STORAGE_ERROR
        assert names(driver) == ["a"]
        assert (await created(driver, "b")).topics[0].error_code == 0
        driver.close()
        assert names(await node.started()) == ["a", "b"]

    run(work())


@pytest.mark.parametrize("operation", ["append", "sync"])
def test_any_other_failure_of_the_log_ends_the_node(operation: str) -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        node.disk.fail(operation, path_contains=SEGMENT)
        with pytest.raises(OSError, match="simulated"):
            await created(driver, "a")

    run(work())


def test_a_snapshot_replaces_the_log_before_it() -> None:
    node = formatted(snapshot_after_bytes=1, retention_bytes=0)

    async def work() -> None:
        driver = await node.started()
        await created(driver, "a", 2)
        await driver.snapshot_if_due()
        end = driver.image.offset + 1
        assert f"{end:020d}-{driver.leader_epoch:010d}.checkpoint" in node.disk.list(LOG)
        await created(driver, "b")
        await driver.snapshot_if_due()
        kept = [name for name in node.disk.list(LOG) if name.endswith(".checkpoint")]
        assert len(kept) == 1  # Retention keeps the newest alone.
        assert driver.log.log_start_offset == int(kept[0][:20])
        await created(driver, "c")
        driver.close()
        again = await node.started()
        assert names(again) == ["a", "b", "c"]
        assert again.quorum.voters.is_alone

    run(work())


def test_a_snapshot_is_due_by_time_too() -> None:
    node = formatted(snapshot_after_ms=3_600_000)

    async def work() -> None:
        driver = await node.started()
        await driver.snapshot_if_due()
        assert len([n for n in node.disk.list(LOG) if n.endswith(".checkpoint")]) == 1
        node.clock.now_ms += 3_600_000
        await driver.snapshot_if_due()
        assert len([n for n in node.disk.list(LOG) if n.endswith(".checkpoint")]) == 2
        node.clock.now_ms += 3_600_000
        await driver.snapshot_if_due()  # Nothing was written since.
        assert len([n for n in node.disk.list(LOG) if n.endswith(".checkpoint")]) == 2

    run(work())


@pytest.mark.parametrize(
    ("operation", "error"), [("append", errno.ENOSPC), ("create", errno.EMFILE)]
)
def test_snapshot_that_meets_a_shortage_is_left_for_later(operation: str, error: int) -> None:
    node = formatted(snapshot_after_bytes=1)

    async def work() -> None:
        driver = await node.started()
        node.disk.fail(operation, error, path_contains="checkpoint.part")
        await driver.snapshot_if_due()
        assert not [name for name in node.disk.list(LOG) if name.endswith(".part")]
        await created(driver, "a")
        await driver.snapshot_if_due()
        assert len([n for n in node.disk.list(LOG) if n.endswith(".checkpoint")]) == 2

    run(work())


def test_a_transaction_that_a_crash_left_open_is_aborted() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        driver._active.write_records([BeginTransactionRecord(), TopicRecord("half", b"h" * 16)])
        await driver.settle()
        node.disk.kill()
        again = await node.started()
        assert names(again) == []
        assert not again.image.is_in_transaction
        assert (await created(again, "half")).topics[0].error_code == 0

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
        driver._active.write_records([FeatureLevelRecord("metadata.version", 31)])
        await driver.settle()
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
        driver._active.write_records([FeatureLevelRecord("share.version", 1)])
        await driver.settle()
        driver.close()
        again = await node.started()
        assert again.image.features["share.version"] == 1
        assert again.finalized_features == {
            "metadata.version": 30,
            "kraft.version": 1,
            "group.version": 1,
        }

    run(work())
    assert "not served by this Ottla yet: share.version 1" in caplog.text


async def workload(node: Node, known: dict[str, bool]) -> None:
    """What is in `known` was answered: True for topics that are there, False for deleted ones."""
    driver = await node.started()
    for number in range(3):
        name = f"t{number}"
        await created(driver, name, 2)
        known[name] = True
        await driver.snapshot_if_due()
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


def test_asking_twice_for_the_same_topic_is_refused_before_it_is_committed() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        codes: list[int] = []
        for _ in range(2):
            request = create_topics.Request([create_topics.CreatableTopic("t", 1, 1)])
            driver.ask(request, lambda reply: codes.append(reply.topics[0].error_code))
        assert codes == []
        await driver.settle()
        assert codes == [0, ErrorCode.TOPIC_ALREADY_EXISTS]

    run(work())


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
