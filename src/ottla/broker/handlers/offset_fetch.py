"""OffsetFetch (api key 9), versions 1 to 10: where groups had stopped reading.

v2  null topics: all that were committed     v8  several groups in one request
v9  member_id and member_epoch are checked   v10  topics by id
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of, gather
from ottla.broker.machines.answer import Answer, refused
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import offset_fetch as wire

GROUPS_SINCE = 8
IDS_SINCE = 10
TOP_LEVEL_ERROR_SINCE = 2
NO_OFFSET = -1
MENTIONS_MAX = 10  # Of a group in one request: each is answered with all that was committed.

Group = wire.OffsetFetchRequestGroup
Found = wire.OffsetFetchResponseGroup


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    groups = request.groups if reply.version >= GROUPS_SINCE else [_only_group(request)]
    is_by_id = reply.version >= IDS_SINCE
    refused = [_take_unknown_ids(group, broker) if is_by_id else [] for group in groups]
    mentions: Counter[str] = Counter()
    submits: list[Callable[[], Answer[Any]]] = []
    for group in groups:
        mentions[group.group_id] += 1
        is_answered = mentions[group.group_id] <= MENTIONS_MAX
        submit = partial(broker.groups.submit, group.group_id, command_of(group, reply))
        submits.append(submit if is_answered else _refuse_repeated)

    def answer(answers: list[Answer[Any]]) -> None:
        found = [_found(*pair) for pair in zip(groups, answers, strict=True)]
        for one, unknown in zip(found, refused, strict=True):
            if is_by_id:
                _name_by_id(one, broker)
                one.topics.extend(unknown)
        if reply.version >= GROUPS_SINCE:
            send(reply, wire.Response(groups=found))
        else:
            send(reply, _old_response(groups[0], found[0], reply.version))

    gather(submits, answer, broker)


def _refuse_repeated() -> Answer[Any]:
    return refused(Refusal(ErrorCode.INVALID_REQUEST))


def _only_group(request: wire.Request) -> Group:
    topics = request.topics
    if topics is not None:
        named = [
            wire.OffsetFetchRequestTopics(topic.name, partition_indexes=topic.partition_indexes)
            for topic in topics
        ]
    return Group(request.group_id, topics=named if topics is not None else None)


def _found(group: Group, answer: Answer[Found]) -> Found:
    try:
        return answer.result()
    except Refusal as refusal:
        return Found(group.group_id, error_code=refusal.code)


def _take_unknown_ids(group: Group, broker: GroupContext) -> list[wire.OffsetFetchResponseTopics]:
    """Give each topic its name; those that have none are answered here."""
    unknown, known = [], []
    if group.topics is None:
        return []
    for asked in group.topics:
        topic = broker.image.topics_by_id.get(asked.topic_id)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            results = [_no_offset(i, code) for i in asked.partition_indexes]
            unknown.append(wire.OffsetFetchResponseTopics("", asked.topic_id, results))
        else:
            asked.name = topic.name
            known.append(asked)
    group.topics = known
    return unknown


def _name_by_id(found: Found, broker: GroupContext) -> None:
    """Offsets of a topic that is gone have no id to be told by."""
    by_name = broker.image.topics_by_name
    found.topics = [topic for topic in found.topics if topic.name in by_name]
    for topic in found.topics:
        topic.topic_id = by_name[topic.name].id


def _no_offset(index: int, code: ErrorCode) -> wire.OffsetFetchResponsePartitions:
    return wire.OffsetFetchResponsePartitions(index, NO_OFFSET, -1, "", code)


def _old_response(group: Group, found: Found, version: int) -> wire.Response:
    """One group, with its error at the top, or, in the first version, at each partition."""
    topics = found.topics
    if found.error_code and version < TOP_LEVEL_ERROR_SINCE:
        code = ErrorCode(found.error_code)
        topics = [
            wire.OffsetFetchResponseTopics(
                asked.name, partitions=[_no_offset(i, code) for i in asked.partition_indexes]
            )
            for asked in group.topics or ()
        ]
    return wire.Response(
        error_code=found.error_code,
        topics=[
            wire.OffsetFetchResponseTopic(
                topic.name,
                [
                    wire.OffsetFetchResponsePartition(
                        part.partition_index,
                        part.committed_offset,
                        part.committed_leader_epoch,
                        part.metadata,
                        part.error_code,
                    )
                    for part in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
