"""DescribeLogDirs: which log lies where, how large it is, and which disk is lost."""

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_log_dirs as wire
from tests.unit.broker.requests import batch, produce_request, write
from tests.unit.broker.serving import World, serving

TWO = ["/data-0", "/data-1"]


def sizes(world: World, request: wire.Request, version: int = 4) -> dict[tuple[str, str, int], int]:
    answer = world.client().ask(request, version)
    return {
        (result.log_dir, topic.name, part.partition_index): part.partition_size
        for result in answer.results
        for topic in result.topics
        for part in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_every_log_is_listed_in_every_version(version: int) -> None:
    with serving() as world:
        world.topic("t", 2)
        write(world, b"x" * 100)
        answer = world.client().ask(wire.Request(None), version)
        [result] = answer.results
        assert (result.error_code, result.log_dir) == (0, "/data")
        [topic] = result.topics
        parts = {part.partition_index: part for part in topic.partitions}
        assert parts[0].partition_size == len(batch(b"x" * 100))
        assert (parts[1].partition_size, parts[1].offset_lag) == (0, 0)
        assert not parts[0].is_future_key
        if version >= 4:
            assert result.total_bytes == 1 << 40
            assert 0 < result.usable_bytes < result.total_bytes


def test_only_what_is_asked_for_is_listed() -> None:
    with serving() as world:
        world.topic("t", 2)
        world.topic("u")
        request = wire.Request([wire.DescribableLogDirTopic("t", [1, 7])])
        assert list(sizes(world, request)) == [("/data", "t", 1)]
        assert sizes(world, wire.Request([])) == {}


def test_the_directory_of_the_metadata_log_is_not_one_of_log_dirs() -> None:
    with serving(metadata_log_dir="/meta") as world:
        world.topic("t")
        answer = world.client().ask(wire.Request(None), 4)
        assert [result.log_dir for result in answer.results] == ["/data"]


def test_a_lost_directory_is_listed_as_such() -> None:
    with serving(directories=TWO) as world:
        world.topic("t", 2)
        lost = next(i for i in (0, 1) if world.partition("t", i).log.directory[:7] == "/data-1")
        world.disk.fail("append", path_contains="/data-1")
        world.client().ask(produce_request(batch(b"x"), "t", lost), 12)
        answer = world.client().ask(wire.Request(None), 4)
        found = {result.log_dir: result for result in answer.results}
        assert found["/data-0"].error_code == 0
        assert found["/data-1"].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert found["/data-1"].topics == []


def test_a_directory_that_could_not_be_opened_is_listed_too() -> None:
    with serving(directories=TWO) as world:
        world.stop()
        world.disk.fail("read", path_contains="/data-1/meta.properties")
        world.start()
        answer = world.client().ask(wire.Request(None), 4)
        codes = {result.log_dir: result.error_code for result in answer.results}
        assert codes == {"/data-0": 0, "/data-1": ErrorCode.KAFKA_STORAGE_ERROR}
