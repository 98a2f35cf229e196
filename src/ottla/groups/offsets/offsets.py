"""Committed offsets: what a group may commit, what it finds again, and when it is forgotten."""

from collections.abc import Callable, Iterator

from ottla.groups.classic.group import ClassicGroup, ClassicState
from ottla.groups.turn import Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import TopicPartition, Uuid, WallTime
from ottla.protocol.group_records import OffsetCommitKey, OffsetCommitValue
from ottla.protocol.messages import offset_commit, offset_delete, offset_fetch

NO_OFFSET = -1
TIMESTAMP_MAX = 2**63 - 1

Committed = dict[TopicPartition, OffsetCommitValue]


def check_classic_commit(group: ClassicGroup, request: offset_commit.Request) -> None:
    """Whether a member, or someone without a group, may commit now."""
    generation, member_id = request.generation_id_or_member_epoch, request.member_id
    if generation < 0 and group.is_empty:
        return  # Nobody but the one who commits.
    if generation >= 0 or member_id or request.group_instance_id is not None:
        group.check_member(member_id, request.group_instance_id)
        if generation != group.generation:
            raise Refusal(ErrorCode.ILLEGAL_GENERATION)
    else:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
    if group.state is ClassicState.COMPLETING_REBALANCE:
        raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS)


def commit(turn: Turn, request: offset_commit.Request) -> offset_commit.Response:
    now, size_max = turn.wall, turn.settings.offset_metadata_size_max
    expires = -1
    if request.retention_time_ms != -1:
        expires = min(now + request.retention_time_ms, TIMESTAMP_MAX)
    response = offset_commit.Response()
    # Of a partition that is named often, the last is written.
    written: dict[TopicPartition, OffsetCommitValue] = {}
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            note = part.committed_metadata or ""
            code = ErrorCode.NONE
            if len(note) > size_max:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                named = TopicPartition(topic.name, part.partition_index)
                written[named] = OffsetCommitValue(
                    part.committed_offset,
                    part.committed_leader_epoch,
                    note,
                    now,
                    expires,
                    topic.topic_id,
                )
            result = offset_commit.OffsetCommitResponsePartition(part.partition_index, code)
            results.append(result)
        response.topics.append(
            offset_commit.OffsetCommitResponseTopic(topic.name, topic.topic_id, results)
        )
    for named, value in written.items():
        turn.write(OffsetCommitKey(request.group_id, *named), value)
    return response


def fetch(
    group: offset_fetch.OffsetFetchRequestGroup, committed: Committed
) -> offset_fetch.OffsetFetchResponseGroup:
    """What was committed for the partitions asked for, or for all if none are named."""
    if group.topics is None:
        asked: dict[str, list[int]] = {}
        for name, index in committed:
            asked.setdefault(name, []).append(index)
        wanted = [(name, bytes(16), sorted(indexes)) for name, indexes in sorted(asked.items())]
    else:
        named: dict[tuple[str, Uuid], dict[int, None]] = {}  # Each partition is answered once.
        for topic in group.topics:
            key = topic.name, topic.topic_id
            named.setdefault(key, {}).update(dict.fromkeys(topic.partition_indexes))
        wanted = [(*key, list(indexes)) for key, indexes in named.items()]
    return offset_fetch.OffsetFetchResponseGroup(
        group.group_id,
        [
            offset_fetch.OffsetFetchResponseTopics(
                name,
                topic_id,
                [_fetched(i, committed.get(TopicPartition(name, i))) for i in indexes],
            )
            for name, topic_id, indexes in wanted
        ],
    )


def _fetched(
    index: int, value: OffsetCommitValue | None
) -> offset_fetch.OffsetFetchResponsePartitions:
    if value is None:
        return offset_fetch.OffsetFetchResponsePartitions(index, NO_OFFSET, -1, "")
    return offset_fetch.OffsetFetchResponsePartitions(
        index, value.offset, value.leader_epoch, value.metadata
    )


def delete(
    turn: Turn,
    request: offset_delete.Request,
    committed: Committed,
    is_subscribed: Callable[[str], bool],
) -> offset_delete.Response:
    response = offset_delete.Response()
    forgotten: set[TopicPartition] = set()  # A partition that is named often is written once.
    for topic in request.topics:
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed(topic.name) else ErrorCode.NONE
        results = []
        for part in topic.partitions:
            named = TopicPartition(topic.name, part.partition_index)
            if not code and named in committed and named not in forgotten:
                forgotten.add(named)
                forget(turn, request.group_id, *named)
            results.append(offset_delete.OffsetDeleteResponsePartition(part.partition_index, code))
        response.topics.append(offset_delete.OffsetDeleteResponseTopic(topic.name, results))
    return response


def forget(turn: Turn, group_id: str, topic: str, partition: int) -> None:
    turn.write(OffsetCommitKey(group_id, topic, partition), None)


def expired(
    group: ClassicGroup, committed: Committed, now: WallTime, retention_ms: int
) -> Iterator[TopicPartition]:
    """Offsets of an empty group, or of topics that nobody in it reads, past their retention."""
    since: int | None = None
    subscribed: set[str] | None = set()
    if group.protocol_type is not None:
        if group.is_empty:
            since = group.state_timestamp
        elif group.is_consumers and group.state is ClassicState.STABLE:
            subscribed = group.subscribed_topics()
        else:
            return
    if subscribed is None:
        return
    for partition, value in committed.items():
        if partition.topic in subscribed:
            continue
        if is_expired(value, now, retention_ms, since):
            yield partition


def is_expired(
    value: OffsetCommitValue, now: WallTime, retention_ms: int, since: int | None
) -> bool:
    if value.expire_timestamp != -1:
        return now >= value.expire_timestamp  # An old client said how long to keep it.
    base = value.commit_timestamp if since is None or since < 0 else since
    return now - base >= retention_ms
