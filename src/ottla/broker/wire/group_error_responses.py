"""The answers to requests about groups that failed as a whole, for `apis.py`."""

from typing import Any, Final

from ottla.broker.wire.error_responses import Failure

# ruff: noqa: ANN401  Requests and responses are of whatever class their API has.

NO_OFFSET: Final = -1
NO_NODE: Final = -1
PROTOCOL_NULL_SINCE: Final = 7  # In JoinGroup.
GROUPS_SINCE: Final = 8  # In OffsetFetch.
KEYS_SINCE: Final = 4  # In FindCoordinator.


def join_group(wire: Any, failure: Failure) -> Any:
    return wire.Response(
        error_code=failure.code,
        protocol_name=None if failure.version >= PROTOCOL_NULL_SINCE else "",
        member_id=failure.request.member_id,
    )


def offset_commit(wire: Any, failure: Failure) -> Any:
    def result(topic: Any) -> Any:
        parts = [
            wire.OffsetCommitResponsePartition(part.partition_index, failure.code)
            for part in topic.partitions
        ]
        return wire.OffsetCommitResponseTopic(topic.name, topic.topic_id, parts)

    return wire.Response(topics=[result(topic) for topic in failure.request.topics])


def offset_fetch(wire: Any, failure: Failure) -> Any:
    if failure.version >= GROUPS_SINCE:
        groups = [
            wire.OffsetFetchResponseGroup(group.group_id, error_code=failure.code)
            for group in failure.request.groups
        ]
        return wire.Response(groups=groups)

    def result(topic: Any) -> Any:
        parts = [
            wire.OffsetFetchResponsePartition(index, NO_OFFSET, -1, "", failure.code)
            for index in topic.partition_indexes
        ]
        return wire.OffsetFetchResponseTopic(topic.name, parts)

    topics = [result(topic) for topic in failure.request.topics or ()]
    return wire.Response(error_code=failure.code, topics=topics)


def find_coordinator(wire: Any, failure: Failure) -> Any:
    code, message = failure.code, failure.message
    if failure.version >= KEYS_SINCE:
        found = [
            wire.Coordinator(key, NO_NODE, "", -1, code, message)
            for key in failure.request.coordinator_keys
        ]
        return wire.Response(coordinators=found)
    return wire.Response(error_code=code, error_message=message, node_id=NO_NODE, port=-1)


def describe_groups(wire: Any, failure: Failure) -> Any:
    groups = [
        wire.DescribedGroup(error_code=failure.code, group_id=group)
        for group in failure.request.groups
    ]
    return wire.Response(groups=groups)


def delete_groups(wire: Any, failure: Failure) -> Any:
    results = [
        wire.DeletableGroupResult(group, failure.code) for group in failure.request.groups_names
    ]
    return wire.Response(results=results)


def consumer_group_describe(wire: Any, failure: Failure) -> Any:
    groups = [
        wire.DescribedGroup(failure.code, failure.message, group)
        for group in failure.request.group_ids
    ]
    return wire.Response(groups=groups)
