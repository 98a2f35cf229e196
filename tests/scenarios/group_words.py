"""How records, answers and states of groups read in a transcript."""

from collections.abc import Iterable
from typing import Any

from ottla.groups.consumer.group import MemberState
from ottla.groups.coordinator import GroupCoordinator
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol import consumer_group_records as records
from ottla.protocol.consumer_protocol import ConsumerProtocolAssignment, decode_versioned
from ottla.protocol.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
)
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    delete_groups,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)

# ruff: noqa: ANN401  Keys, values and replies are of many classes.


def place(text: str) -> tuple[str, int]:
    topic, _, index = text.rpartition("-")
    return topic, int(index)


def places(parts: Iterable[Any]) -> str:
    """Topics by id, as `tests.unit.groups.consuming` names them, with their partitions."""
    return (
        " ".join(
            f"{one.topic_id.rstrip(b'_').decode()}-{index}"
            for one in parts
            for index in sorted(one.partitions)
        )
        or "nothing"
    )


def assigned(data: bytes) -> str:
    if not data:
        return "nothing"
    assignment, _ = decode_versioned(ConsumerProtocolAssignment, data)
    found = [f"{t.topic}-{index}" for t in assignment.assigned_partitions for index in t.partitions]
    return " ".join(found) or "nothing"


def written(record: GroupRecord) -> str:
    key, value = record
    match key:
        case OffsetCommitKey():
            return f"offset of {key.topic}-{key.partition} {_or_gone(value, 'offset')}"
        case GroupMetadataKey():
            return "group is gone" if value is None else _classic(value)
        case records.ConsumerGroupMetadataKey():
            return f"epoch of the group {_or_gone(value, 'epoch')}"
        case records.ConsumerGroupPartitionMetadataKey():
            return "topics of the group are gone"
        case records.ConsumerGroupTargetAssignmentMetadataKey():
            return f"epoch of the target {_or_gone(value, 'assignment_epoch')}"
        case records.ConsumerGroupRegularExpressionKey():
            topics = "is gone" if value is None else f"means {' '.join(value.topics) or 'nothing'}"
            return f"expression {key.regular_expression} {topics}"
        case _:
            return _of_member(key, value)


def _or_gone(value: Any, attribute: str) -> str:
    return "is gone" if value is None else f"is {getattr(value, attribute)}"


def _classic(value: GroupMetadataValue) -> str:
    members = "; ".join(f"{m.member_id} has {assigned(m.assignment)}" for m in value.members)
    leader = f", led by {value.leader}" if value.leader else ""
    return f"generation {value.generation}{leader}: {members or 'empty'}"


def _of_member(key: Any, value: Any) -> str:
    match key:
        case records.ConsumerGroupMemberMetadataKey():
            if value is None:
                return f"{key.member_id} is gone"
            reads = value.subscribed_topic_regex or " ".join(value.subscribed_topic_names)
            instance = f" as {value.instance_id}" if value.instance_id else ""
            return f"{key.member_id}{instance} reads {reads}"
        case records.ConsumerGroupTargetAssignmentMemberKey():
            if value is None:
                return f"{key.member_id} has no target"
            return f"{key.member_id} shall have {places(value.topic_partitions)}"
        case records.ConsumerGroupCurrentMemberAssignmentKey():
            if value is None:
                return f"{key.member_id} has nothing"
            return f"{key.member_id} {_current(value)}"
    raise AssertionError(key)


def _current(value: records.ConsumerGroupCurrentMemberAssignmentValue) -> str:
    state = MemberState(value.state).name.lower().replace("_", " ")
    revoking = value.partitions_pending_revocation
    gives_up = f", gives up {places(revoking)}" if revoking else ""
    has = places(value.assigned_partitions)
    return f"at epoch {value.member_epoch} has {has}{gives_up} ({state})"


def reply_text(reply: Any) -> str:
    if isinstance(reply, Refusal):
        return reply.code.name
    code = getattr(reply, "error_code", 0)
    if code:
        member = f", take the id {reply.member_id}" if code == ErrorCode.MEMBER_ID_REQUIRED else ""
        return ErrorCode(code).name + member
    match reply:
        case join_group.Response():
            others = " ".join(m.member_id for m in reply.members)
            skip = ", skips the assignment" if reply.skip_assignment else ""
            leads = f", leads {others}" if others else f", led by {reply.leader}"
            generation = f"generation {reply.generation_id} ({reply.protocol_name})"
            return f"{reply.member_id} is in {generation}{leads}{skip}"
        case sync_group.Response():
            return f"has {assigned(reply.assignment)}"
        case heartbeat.Response():
            return "alive"
        case consumer_group_heartbeat.Response():
            parts = None if reply.assignment is None else reply.assignment.topic_partitions
            has = "" if parts is None else f": {places(parts)}"
            return f"epoch {reply.member_epoch}{has}"
        case _:
            return _administrative(reply)


def _administrative(reply: Any) -> str:
    match reply:
        case leave_group.Response():
            return " ".join(_done(m.error_code, "left") for m in reply.members)
        case offset_commit.Response() | offset_delete.Response():
            codes = [part.error_code for topic in reply.topics for part in topic.partitions]
            return " ".join(_done(code, "done") for code in codes)
        case offset_fetch.OffsetFetchResponseGroup():
            found = [
                f"{topic.name}-{part.partition_index} at {part.committed_offset}"
                for topic in reply.topics
                for part in topic.partitions
            ]
            return ", ".join(found)
        case delete_groups.DeletableGroupResult():
            return "deleted"
    raise AssertionError(reply)


def _done(code: int, word: str) -> str:
    return ErrorCode(code).name if code else word


def state_text(machine: GroupCoordinator) -> str:
    for group in machine.groups.values():
        members = " ".join(sorted(group.members)) or "nobody"
        return f"a classic group, {group.state.value}, generation {group.generation}: {members}"
    for consumers in machine.consumers.by_id.values():
        members = " ".join(sorted(consumers.members)) or "nobody"
        return f"a consumer group, {consumers.state}, epoch {consumers.epoch}: {members}"
    return "no group"
