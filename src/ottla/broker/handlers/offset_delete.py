"""OffsetDelete (api key 47), version 0: forget offsets of a group.

Only of topics that nobody in the group reads; topics that do not exist are refused.
"""

from ottla.broker.coordinators.group_requests import GroupContext, answer_with, command_of
from ottla.broker.machines.answer import Answer
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import offset_delete as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    if not request.group_id:
        raise Refusal(ErrorCode.INVALID_GROUP_ID)
    known, unknown = [], []
    for asked in request.topics:
        topic = broker.image.topics_by_name.get(asked.name)
        existing, missing = [], []
        for part in asked.partitions:
            if topic is not None and part.partition_index in topic.partitions:
                existing.append(part)
            else:
                missing.append(part)
        if existing:
            known.append(wire.OffsetDeleteRequestTopic(asked.name, existing))
        if missing:
            unknown.append(wire.OffsetDeleteRequestTopic(asked.name, missing))
    refused = [_refused(topic) for topic in unknown]
    wanted = wire.Request(request.group_id, known)

    def answer(deleted: Answer[wire.Response]) -> None:
        try:
            response = deleted.result()
        except Refusal:
            answer_with(request, reply, deleted)
        else:
            response.topics = _merged(response.topics, refused)
            send(reply, response)

    broker.groups.submit(request.group_id, command_of(wanted, reply)).then(answer)


def _merged(
    done: list[wire.OffsetDeleteResponseTopic], refused: list[wire.OffsetDeleteResponseTopic]
) -> list[wire.OffsetDeleteResponseTopic]:
    """One entry per topic, even if only some of its partitions exist."""
    by_name = {topic.name: topic for topic in refused}
    for topic in done:
        if topic.name in by_name:
            by_name[topic.name].partitions.extend(topic.partitions)
        else:
            by_name[topic.name] = topic
    return list(by_name.values())


def _refused(topic: wire.OffsetDeleteRequestTopic) -> wire.OffsetDeleteResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    results = [
        wire.OffsetDeleteResponsePartition(part.partition_index, code) for part in topic.partitions
    ]
    return wire.OffsetDeleteResponseTopic(topic.name, results)
