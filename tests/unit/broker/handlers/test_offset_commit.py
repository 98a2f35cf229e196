"""OffsetCommit through a broker: by name and by id, and what does not exist."""

import pytest

from ottla.broker.handlers.offset_commit import _merged
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import offset_commit as wire
from tests.cpu import cpu_seconds
from tests.unit.broker.grouping import QUICK, commit, fetch, find, stable
from tests.unit.broker.serving import serving
from tests.unit.groups.driving import GROUP

Topic, Part = wire.OffsetCommitRequestTopic, wire.OffsetCommitRequestPartition


@pytest.mark.parametrize("version", range(2, 11))
def test_what_exists_is_committed_in_every_version(version: int) -> None:
    with serving(**QUICK) as world:
        topic_id = world.topic("t")
        find(world)
        parts = [Part(0, 5, -1, "note"), Part(7, 5, -1, "")]
        if version >= 10:
            topics = [Topic("", topic_id, parts), Topic("", b"?" * 16, [Part(0, 1, -1, "")])]
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topics = [Topic("t", partitions=parts), Topic("u", partitions=[Part(0, 1, -1, "")])]
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer = world.client().ask(wire.Request(GROUP, topics=topics), version)
        codes = [[(p.partition_index, p.error_code) for p in t.partitions] for t in answer.topics]
        assert codes == [[(7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, 0)], [(0, missing)]]
        assert fetch(world) == (5, 0)


def test_a_request_of_nothing_that_exists_needs_no_coordinator() -> None:
    with serving(**QUICK) as world:
        assert commit(world, 5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_stale_member_is_refused_for_every_partition() -> None:
    with serving(**QUICK) as world:
        world.topic("t", 2)
        _, generation, member = stable(world)
        parts = [Part(0, 5, -1, ""), Part(1, 5, -1, ""), Part(9, 5, -1, "")]
        request = wire.Request(GROUP, generation + 1, member, topics=[Topic("t", partitions=parts)])
        answer = world.client().ask(request, 9)
        codes = [part.error_code for part in answer.topics[0].partitions]
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [missing, *[ErrorCode.ILLEGAL_GENERATION] * 2]
        assert fetch(world) == (-1, 0)


def test_topics_that_are_named_often_are_merged_in_linear_time() -> None:
    def results(name: str, topic_id: bytes = bytes(16)) -> wire.OffsetCommitResponseTopic:
        part = wire.OffsetCommitResponsePartition(0)
        return wire.OffsetCommitResponseTopic(name, topic_id, [part])

    done = [results("t", b"t" * 16) for _ in range(10_000)]
    assert len(_merged(list(done), [results("u") for _ in range(10_000)])) == 20_000
    others = [results("u") for _ in range(10_000)]
    assert cpu_seconds(lambda: _merged(list(done), others)) < 1  # Each with each takes 10 s.
    (both,) = _merged([results("t", b"t" * 16)], [results("", b"t" * 16)])
    assert len(both.partitions) == 2
