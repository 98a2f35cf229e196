import pytest

from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.messages import offset_commit, offset_fetch
from ottla.simulation.clients.group_member import commit_request, fetched_offsets, settle
from ottla.simulation.history.group_history import Fate, GroupHistory

FIRST, SECOND = TopicPartition("topic", 0), TopicPartition("topic", 1)


def test_a_commit_bears_its_token() -> None:
    request = commit_request("group", {FIRST: 3, SECOND: 4}, "token")
    [topic] = request.topics
    parts = [
        (p.partition_index, p.committed_offset, p.committed_metadata) for p in topic.partitions
    ]
    assert parts == [(0, 3, "token"), (1, 4, "token")]


def test_what_became_of_a_commit_is_noted_by_partition() -> None:
    history = GroupHistory(lambda: 5)
    writes = {place: history.writing("group", place, 3, "token") for place in (FIRST, SECOND)}
    parts = [
        offset_commit.OffsetCommitResponsePartition(0),
        offset_commit.OffsetCommitResponsePartition(1, ErrorCode.ILLEGAL_GENERATION),
    ]
    topics = [offset_commit.OffsetCommitResponseTopic("topic", partitions=parts)]
    code = settle(offset_commit.Response(topics=topics), writes, history, "group")
    assert code == ErrorCode.ILLEGAL_GENERATION
    assert writes[FIRST].fate is Fate.DONE
    assert writes[SECOND].fate is Fate.REFUSED


def test_a_coordinator_that_is_gone_leaves_the_fate_open() -> None:
    history = GroupHistory(lambda: 5)
    write = history.writing("group", FIRST, 3, "token")
    parts = [offset_commit.OffsetCommitResponsePartition(0, ErrorCode.NOT_COORDINATOR)]
    topics = [offset_commit.OffsetCommitResponseTopic("topic", partitions=parts)]
    settle(offset_commit.Response(topics=topics), {FIRST: write}, history, "group")
    assert write.fate is Fate.UNKNOWN


@pytest.mark.parametrize("offset", [7, -1])
def test_fetched_offsets_are_by_partition(offset: int) -> None:
    parts = [offset_fetch.OffsetFetchResponsePartitions(1, offset, -1, "token")]
    topics = [offset_fetch.OffsetFetchResponseTopics("topic", partitions=parts)]
    answer = offset_fetch.Response(groups=[offset_fetch.OffsetFetchResponseGroup("group", topics)])
    assert fetched_offsets(answer) == {SECOND: (offset, "token")}
