"""Compacted topics of a running broker: which log is cleaned, when, and what stands in the way."""

import asyncio
import errno
import logging

import pytest

from ottla.broker.partitions.cleaner import Cleaner
from ottla.model.types import TopicPartition
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch, read_records
from tests.unit.broker.requests import fetch_request, only, produce_request
from tests.unit.broker.serving import BROKER_RESOURCE, World, serving

SEGMENT_BYTES = 2000
BACKOFF_MS = 15_000
MINUTE_MS = 60_000


def topic(world: World, name: str = "t", policy: str = "compact", **configs: object) -> None:
    given = {"internal_segment_bytes": SEGMENT_BYTES, **configs}
    world.topic(name, cleanup_policy=policy, **given)


def put(world: World, key: bytes, value: bytes | None, topic: str = "t") -> None:
    data = build_batch([Record(0, world.now, key, value)])
    answer = only(world.client().ask(produce_request(data, topic), 12))
    assert answer.error_code == 0, answer


def fill(world: World, count: int = 60, keys: int = 3, topic: str = "t") -> dict[bytes, bytes]:
    model = {}
    for number in range(count):
        key, value = b"key%d" % (number % keys), b"%d " % number * 30
        put(world, key, value, topic)
        model[key] = value
    return model


def records(world: World, topic: str = "t") -> list[Record]:
    """What a consumer gets that begins at the beginning."""
    found: list[Record] = []
    offset = world.partition(topic).log.log_start_offset
    while True:
        part = only(world.client().ask(fetch_request((topic, 0, offset)), 12))
        data, position = bytes(part.records or b""), 0
        while position < len(data):
            batch = Batch.parse(data, position)
            found += read_records(batch, 10**6)
            position += batch.size
            offset = batch.next_offset
        if not data:
            assert offset == part.high_watermark
            return found


def as_dictionary(world: World, topic: str = "t") -> dict[bytes | None, bytes | None]:
    return {record.key: record.value for record in records(world, topic)}


def cleaned_to(world: World, topic: str = "t") -> int | None:
    log = world.partition(topic).log
    checkpoints = world.broker.directories.of(log).checkpoints
    return checkpoints.cleaned.get(TopicPartition(topic, 0))


def test_a_compacted_topic_keeps_the_last_value_of_each_key() -> None:
    with serving() as world:
        topic(world)
        model = fill(world)
        before = len(records(world))
        world.pass_ms(BACKOFF_MS + 1000)
        active = world.partition().log.segments[-1].base_offset
        assert as_dictionary(world) == model
        assert len(records(world)) < before / 2
        assert cleaned_to(world) == active
        assert (
            world.disk.read("/data/cleaner-offset-checkpoint") == f"0\n1\nt 0 {active}\n".encode()
        )
        world.restart()
        assert as_dictionary(world) == model
        assert cleaned_to(world) == active
        world.lose_power()
        assert as_dictionary(world) == model


def test_a_topic_that_is_not_compacted_is_left_alone() -> None:
    with serving() as world:
        topic(world, policy="delete")
        fill(world)
        world.pass_ms(2 * BACKOFF_MS)
        assert len(records(world)) == 60
        world.configure("t", "cleanup.policy", "compact")
        world.pass_ms(2 * BACKOFF_MS)
        assert len(records(world)) < 30


def test_both_policies_work_on_one_topic() -> None:
    with serving(log_retention_check_interval_ms=1000) as world:
        topic(world, policy="compact,delete", retention_ms=10 * MINUTE_MS, segment_ms=MINUTE_MS)
        model = fill(world)
        world.pass_ms(2 * MINUTE_MS)
        assert len(records(world)) < 30
        assert as_dictionary(world) == model
        put(world, b"new", b"1")
        world.pass_ms(11 * MINUTE_MS)
        put(world, b"newer", b"2")
        assert as_dictionary(world) == {b"newer": b"2"}


def test_a_log_is_cleaned_when_enough_of_it_is_dirty() -> None:
    with serving() as world:
        topic(world, min_cleanable_dirty_ratio=0.5)
        fill(world, 60, keys=60)
        world.pass_ms(2 * BACKOFF_MS)
        first = cleaned_to(world)
        assert first
        fill(world, 30, keys=30)
        world.pass_ms(2 * BACKOFF_MS)
        assert cleaned_to(world) == first
        world.configure("t", "min.cleanable.dirty.ratio", 0.2)
        world.pass_ms(2 * BACKOFF_MS)
        assert (cleaned_to(world) or 0) > first


def test_the_least_lag_holds_the_cleaner_back_and_the_greatest_urges_it() -> None:
    with serving() as world:
        topic(world, min_compaction_lag_ms=10 * MINUTE_MS)
        fill(world)
        world.pass_ms(2 * MINUTE_MS)
        assert cleaned_to(world) is None
        world.pass_ms(10 * MINUTE_MS)
        assert cleaned_to(world)
        topic(world, "u", min_cleanable_dirty_ratio=1, max_compaction_lag_ms=10 * MINUTE_MS)
        fill(world, topic="u")
        world.pass_ms(2 * MINUTE_MS)
        assert cleaned_to(world, "u") is None
        world.pass_ms(10 * MINUTE_MS)
        assert cleaned_to(world, "u")


def test_the_dirtiest_log_comes_first() -> None:
    with serving(log_cleaner_backoff_ms=10**9) as world:
        topic(world, "t", min_cleanable_dirty_ratio=0)
        topic(world, "u", min_cleanable_dirty_ratio=0)
        fill(world, topic="t", keys=60)
        cleaner = world.broker.cleaner
        assert world.run(cleaner.clean_dirtiest())
        fill(world, 30, topic="t")
        fill(world, topic="u")
        assert world.run(cleaner.clean_dirtiest())
        assert cleaned_to(world, "u")
        first = cleaned_to(world, "t")
        assert world.run(cleaner.clean_dirtiest())
        assert cleaned_to(world, "t") != first
        assert not world.run(cleaner.clean_dirtiest())


def test_tombstones_go_after_their_retention() -> None:
    with serving() as world:
        topic(world, delete_retention_ms=MINUTE_MS, min_cleanable_dirty_ratio=0)
        put(world, b"gone", b"x" * 200)
        put(world, b"gone", None)
        fill(world)
        world.pass_ms(2 * BACKOFF_MS)
        assert as_dictionary(world)[b"gone"] is None
        world.pass_ms(2 * MINUTE_MS)
        fill(world)
        world.pass_ms(2 * BACKOFF_MS)
        assert b"gone" not in as_dictionary(world)


def test_a_cleaner_that_is_switched_off_cleans_nothing() -> None:
    with serving(log_cleaner_enable="false") as world:
        topic(world)
        fill(world)
        world.pass_ms(10 * MINUTE_MS)
        assert len(records(world)) == 60


def test_a_damaged_log_is_named_once_and_the_others_are_cleaned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving() as world:
        topic(world, "t")
        topic(world, "u")
        fill(world, topic="t")
        model = fill(world, topic="u")
        path = world.partition("t").log.segments[1].log_path
        world.disk.flip_bit(path, 150)
        with caplog.at_level(logging.ERROR):
            world.pass_ms(10 * MINUTE_MS)
        lines = [record.message for record in caplog.records if "not compacted" in record.message]
        assert len(lines) == 1
        assert path in lines[0]
        assert list(world.broker.cleaner.uncleanable) == [world.partition("t").log]
        assert cleaned_to(world, "t") is None
        assert not [name for name in world.disk.list("/data/t-0") if name.endswith(".cleaned")]
        assert len(records(world, "u")) < 30
        assert as_dictionary(world, "u") == model
        world.delete("t")
        world.pass_ms(BACKOFF_MS)
        assert not world.broker.cleaner.uncleanable


def test_a_map_without_room_for_one_batch_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with serving(log_cleaner_dedupe_buffer_size=24 * 20) as world:
        topic(world, segment_ms=1000)
        many = [Record(i, world.now, b"%d" % i, b"v") for i in range(30)]
        for _ in range(2):
            data = build_batch(many)
            assert only(world.client().ask(produce_request(data), 12)).error_code == 0
            world.pass_ms(2000)
            many = [record._replace(timestamp=world.now) for record in many]
        with caplog.at_level(logging.ERROR):
            world.pass_ms(MINUTE_MS)
        assert any("dedupe.buffer.size" in record.message for record in caplog.records)
        assert len(records(world)) == 60


def test_the_rate_of_the_cleaner_is_bounded() -> None:
    with serving(log_cleaner_backoff_ms=10**9) as world:
        topic(world)
        fill(world)
        world.configure("", "log.cleaner.io.max.bytes.per.second", 100, BROKER_RESOURCE)
        begun = world.now
        assert world.run(world.broker.cleaner.clean_dirtiest())
        total = world.broker.cleaner.read_bytes + world.broker.cleaner.written_bytes
        assert world.now - begun >= 1000 * total / 100 * 0.9


def begun_slowly(world: World) -> "asyncio.Task[bool]":
    """A round that is in the middle of a log and will be for some time."""
    world.configure("", "log.cleaner.io.max.bytes.per.second", 1000, BROKER_RESOURCE)
    task = world.loop.create_task(world.broker.cleaner.clean_dirtiest())
    world.pass_ms(MINUTE_MS // 6)
    assert not task.done()
    return task


def test_a_topic_that_is_deleted_while_it_is_cleaned_is_gone() -> None:
    with serving(log_cleaner_backoff_ms=10**9) as world:
        topic(world)
        fill(world)
        world.pass_ms(2 * MINUTE_MS)
        task = begun_slowly(world)
        world.delete("t")
        world.run(task)
        assert not world.disk.exists("/data/t-0")
        topic(world)
        model = fill(world)
        assert world.run(world.broker.cleaner.clean_dirtiest())
        assert as_dictionary(world) == model


def test_retention_and_the_cleaner_do_not_meet() -> None:
    with serving(log_cleaner_backoff_ms=10**9, log_retention_check_interval_ms=1000) as world:
        topic(world, policy="compact,delete")
        model = fill(world)
        world.pass_ms(2 * MINUTE_MS)
        task = begun_slowly(world)
        world.configure("t", "retention.bytes", 3 * SEGMENT_BYTES)
        world.pass_ms(2000)
        start = world.partition().log.log_start_offset
        assert start > 0
        world.run(task)
        assert world.broker.directories.online()
        assert world.partition().log.log_start_offset == start
        while world.run(world.broker.cleaner.clean_dirtiest()):
            pass
        assert as_dictionary(world) == model


def test_a_full_disk_stops_the_cleaner_and_nothing_else() -> None:
    with serving(log_cleaner_backoff_ms=10**9) as world:
        topic(world)
        model = fill(world)
        world.pass_ms(2 * MINUTE_MS)
        world.disk.fail("append", errno.ENOSPC, path_contains=".cleaned")
        assert not world.run(world.broker.cleaner.clean_dirtiest())
        assert not [name for name in world.disk.list("/data/t-0") if name.endswith(".cleaned")]
        assert as_dictionary(world) == model
        world.pass_ms(2000)
        assert world.run(world.broker.cleaner.clean_dirtiest())
        assert as_dictionary(world) == model


def test_a_disk_that_fails_while_a_log_is_cleaned_is_offline() -> None:
    with serving(directories=("/data", "/other"), log_cleaner_backoff_ms=10**9) as world:
        topic(world, "t")
        topic(world, "u")
        lost = "u" if world.disk.exists("/other/u-0") else "t"
        fill(world, topic=lost)
        world.pass_ms(2 * MINUTE_MS)
        world.disk.fail("sync", path_contains=".cleaned")
        assert not world.run(world.broker.cleaner.clean_dirtiest())
        assert [directory.path for directory in world.broker.directories.online()] == ["/data"]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
@pytest.mark.parametrize("failing", [".timeindex.cleaned", ".log.swap", ".index.swap"])
def test_a_swap_that_fails_half_way_is_finished_by_the_next_start(failing: str, error: int) -> None:
    with serving(directories=("/data", "/other"), log_cleaner_backoff_ms=10**9) as world:
        topic(world, "t")
        topic(world, "u")
        lost = "u" if world.disk.exists("/other/u-0") else "t"
        model = fill(world, topic=lost)
        world.pass_ms(2 * MINUTE_MS)
        world.disk.fail("rename", error, path_contains=f"{0:020d}{failing}")
        assert not world.run(world.broker.cleaner.clean_dirtiest())
        assert [directory.path for directory in world.broker.directories.online()] == ["/data"]
        world.restart()
        assert as_dictionary(world, lost) == model


def test_a_broker_stops_in_the_middle_of_a_round() -> None:
    with serving() as world:
        topic(world)
        model = fill(world)
        world.workers.is_holding = True
        world.pass_ms(BACKOFF_MS + 1000)
        assert isinstance(world.broker.cleaner, Cleaner)
        world.workers.is_holding = False
        world.restart()
        assert as_dictionary(world) == model


def test_a_file_that_is_missing_in_a_swap_costs_its_partition() -> None:
    with serving(directories=("/data", "/other"), log_cleaner_backoff_ms=10**9) as world:
        topic(world, "t")
        fill(world)
        world.pass_ms(2 * MINUTE_MS)
        world.disk.fail("rename", errno.ENOENT, path_contains=f"{0:020d}.log.swap")
        assert not world.run(world.broker.cleaner.clean_dirtiest())
        assert len(world.broker.directories.online()) == 2
        assert world.broker.partitions.damages == 1


@pytest.mark.parametrize("why", ["removed", "shorter", "EIO", "ENFILE"])
def test_a_log_that_cannot_be_looked_at_costs_itself_alone(why: str) -> None:
    """Before any is cleaned, the age of each is read from the headers of its segments."""
    with serving(("/data", "/more")) as world:
        for name in "tuvw":
            topic(world, name)
            fill(world, topic=name)
        bad = next(n for n in "tuvw" if world.partition(n).log.directory.startswith("/more"))
        log = world.partition(bad).log
        segment = log.segments[1]
        world.restart()
        if why == "removed":
            world.disk.remove(segment.log_path)
        elif why == "shorter":
            world.disk.open(segment.log_path).truncate(10)
        else:
            operation = "read" if why == "EIO" else "open"
            world.disk.fail(operation, getattr(errno, why), path_contains=segment.log_path)
        world.pass_ms(3 * BACKOFF_MS)
        assert not world.broker.failed.done()
        partitions = world.broker.partitions
        online = [directory.path for directory in world.broker.directories.online()]
        assert online == (["/data"] if why == "EIO" else ["/data", "/more"])
        assert partitions.damages == (why in ("removed", "shorter"))
        assert (why == "shorter") == bool(world.broker.cleaner.uncleanable)
        cleaned = [p.name.topic for p in partitions.all() if cleaned_to(world, p.name.topic)]
        others = {p.name.topic for p in partitions.all()} - {bad}
        assert set(cleaned) == (others | {bad} if why == "ENFILE" else others)
