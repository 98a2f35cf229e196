"""OffsetCommit (api key 8), versions 2 to 10: how far a group has read.

v9  consumer groups too: GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH     v10  topics by id

Partitions that do not exist are refused one by one; the rest is committed together.
"""

from typing import Any

from ottla.broker.coordinators.group_requests import GroupContext, command_of
from ottla.broker.machines.answer import Answer
from ottla.broker.wire.apis import error_response, handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, Uuid
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import offset_commit as wire

IDS_SINCE = 10

Topic = wire.OffsetCommitRequestTopic
Result = wire.OffsetCommitResponseTopic


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    known, refused = _sort(request.topics, broker, reply.version >= IDS_SINCE)
    if not known:
        send(reply, wire.Response(topics=refused))
        return
    wanted = wire.Request(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        known,
    )

    def answer(committed: Answer[Any]) -> None:
        try:
            response = committed.result()
        except Refusal as refusal:
            response = error_response(ApiKey.OFFSET_COMMIT, wanted, reply.version, refusal.code)
        response.topics = _merged(response.topics, refused)
        send(reply, response)

    broker.groups.submit(request.group_id, command_of(wanted, reply)).then(answer)


def _sort(
    topics: list[Topic], broker: GroupContext, is_by_id: bool
) -> tuple[list[Topic], list[Result]]:
    """Name and id of each topic that exists, with those of its partitions that do."""
    image = broker.image
    known, refused = [], []
    for asked in topics:
        if is_by_id:
            topic, code = image.topics_by_id.get(asked.topic_id), ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = image.topics_by_name.get(asked.name)
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        existing, missing = [], []
        for part in asked.partitions:
            if topic is not None and part.partition_index in topic.partitions:
                existing.append(part)
            else:
                missing.append(part)
        if topic is not None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if existing and topic is not None:
            known.append(Topic(topic.name, topic.id, existing))
        if missing:
            results = [
                wire.OffsetCommitResponsePartition(part.partition_index, code) for part in missing
            ]
            refused.append(Result(asked.name, asked.topic_id, results))
    return known, refused


def _merged(done: list[Result], refused: list[Result]) -> list[Result]:
    """One entry per topic, even if only some of its partitions exist; as Kafka, those last."""
    merged = list(refused)
    by_key: dict[Uuid | str, Result] = {}
    for one in refused:
        for key in _keys(one):
            by_key.setdefault(key, one)
    for one in done:
        other = next((by_key[key] for key in _keys(one) if key in by_key), None)
        if other is None:
            merged.append(one)
        else:
            other.partitions.extend(one.partitions)
    return merged


def _keys(topic: Result) -> list[Uuid | str]:
    """What a topic is known by: its id, its name, or both."""
    keys: list[Uuid | str] = [topic.topic_id] if topic.topic_id != ZERO_UUID else []
    return [*keys, topic.name] if topic.name else keys
