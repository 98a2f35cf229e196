import asyncio
import errno

import pytest

from ottla.metadata.image.delta import ImageDelta
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import create_topics, update_features
from ottla.protocol.metadata_records import (
    BeginTransactionRecord,
    TopicRecord,
)
from tests.answers import collect
from tests.unit.broker.driving import (
    LOG,
    SEGMENT,
    asked,
    created,
    formatted,
    names,
    run,
)


def test_an_epoch_that_ends_before_a_write_begins_ends_nothing_else() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        answers: list[object] = []
        topic = create_topics.CreatableTopic("a", 1, 1)
        collect(driver.requests.decide(create_topics.Request([topic])), answers)
        settling = asyncio.get_running_loop().create_task(driver.commits.settle())
        await asyncio.sleep(0)
        assert driver.commits._committing is not None, "the write is about to begin"
        driver.commits.ended(driver.leader_epoch)
        await settling
        assert [answer.code for answer in answers] == [ErrorCode.NOT_CONTROLLER]
        assert names(driver) == []
        driver.close()

    run(work())


def test_subscribers_hear_before_anyone_is_answered() -> None:
    node = formatted()
    heard: list[str] = []

    async def work() -> None:
        driver = await node.started()

        def changed(delta: ImageDelta) -> None:
            heard.extend(topic.name for topic in delta.created)
            assert "t" in driver.image.topics_by_name

        driver.commits.subscribe(changed)
        topic = create_topics.CreatableTopic("t", 1, 1)
        answer = driver.requests.decide(create_topics.Request([topic]))
        answer.then(lambda _: heard.append("answer"))
        assert heard == []
        await driver.commits.settle()

    run(work())
    assert heard == ["t", "answer"]


def test_a_feature_that_a_single_node_lowered_to_0_stays_there_after_a_restart() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        assert driver.image.features["group.version"] == 1
        lowered = update_features.FeatureUpdateKey("group.version", 0, upgrade_type=2)
        response = await asked(driver, update_features.Request(1_000, [lowered]))
        assert response.error_code == ErrorCode.NONE
        await node.stopped(driver)
        again = await node.started()
        assert "group.version" not in again.image.features

    run(work())


def test_the_image_holds_only_what_is_synced() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        driver.requests.decide(create_topics.Request([create_topics.CreatableTopic("t", 1, 1)]))
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
            driver.requests.decide(
                create_topics.Request([create_topics.CreatableTopic(name, 1, 1)])
            )
        await driver.commits.settle()
        assert names(driver) == ["a", "b", "c"]
        assert node.disk.operations == before + 2  # One write, one sync.

    run(work())


def test_a_running_driver_commits_by_itself_and_stops_when_told() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        async with asyncio.TaskGroup() as group:
            group.create_task(driver.commits.run())
            topic = create_topics.CreatableTopic("t", 1, 1)
            response = await driver.requests.submit(create_topics.Request([topic]))
            assert response.topics[0].error_code == 0
            driver.commits.stop()
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
        await driver.commits.snapshot_if_due()
        end = driver.image.offset + 1
        assert f"{end:020d}-{driver.leader_epoch:010d}.checkpoint" in node.disk.list(LOG)
        await created(driver, "b")
        await driver.commits.snapshot_if_due()
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
        await driver.commits.snapshot_if_due()
        assert len([n for n in node.disk.list(LOG) if n.endswith(".checkpoint")]) == 1
        node.clock.now_ms += 3_600_000
        await driver.commits.snapshot_if_due()
        assert len([n for n in node.disk.list(LOG) if n.endswith(".checkpoint")]) == 2
        node.clock.now_ms += 3_600_000
        await driver.commits.snapshot_if_due()  # Nothing was written since.
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
        await driver.commits.snapshot_if_due()
        assert not [name for name in node.disk.list(LOG) if name.endswith(".part")]
        await created(driver, "a")
        await driver.commits.snapshot_if_due()
        assert len([n for n in node.disk.list(LOG) if n.endswith(".checkpoint")]) == 2

    run(work())


def test_a_transaction_that_a_crash_left_open_is_aborted() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        driver.commits.active.write_records(
            [BeginTransactionRecord(), TopicRecord("half", b"h" * 16)]
        )
        await driver.commits.settle()
        node.disk.kill()
        again = await node.started()
        assert names(again) == []
        assert not again.image.is_in_transaction
        assert (await created(again, "half")).topics[0].error_code == 0

    run(work())


def test_asking_twice_for_the_same_topic_is_refused_before_it_is_committed() -> None:
    node = formatted()

    async def work() -> None:
        driver = await node.started()
        codes: list[int] = []
        for _ in range(2):
            request = create_topics.Request([create_topics.CreatableTopic("t", 1, 1)])
            answer = driver.requests.decide(request)
            answer.then(lambda given: codes.append(given.result().topics[0].error_code))
        assert codes == []
        await driver.commits.settle()
        assert codes == [0, ErrorCode.TOPIC_ALREADY_EXISTS]

    run(work())
