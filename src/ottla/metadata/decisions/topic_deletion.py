"""The decision of DeleteTopics: by name or by id, with Kafka's answers to ambiguous requests."""

from collections import Counter
from typing import Any

from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.model.errors import ErrorCode
from ottla.model.types import ZERO_UUID, Uuid
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import delete_topics as wire


def delete_topics(context: DecisionContext, request: wire.Request) -> Outcome:
    names: list[str] = list(request.topic_names)
    ids: list[Uuid] = []
    results: list[wire.DeletableTopicResult] = []
    for topic in request.topics:
        if topic.name is None and topic.topic_id == ZERO_UUID:
            results.append(_invalid(None, ZERO_UUID, "Neither topic name nor id were specified."))
        elif topic.name is None:
            ids.append(topic.topic_id)
        elif topic.topic_id == ZERO_UUID:
            names.append(topic.name)
        else:
            sentence = "You may not specify both topic name and topic id."
            results.append(_invalid(topic.name, topic.topic_id, sentence))
    name_counts, id_counts = Counter(names), Counter(ids)
    for name, count in name_counts.items():
        if count > 1:
            results.append(_invalid(name, ZERO_UUID, "Duplicate topic name."))
    for topic_id, count in id_counts.items():
        if count > 1:
            results.append(_invalid(None, topic_id, "Duplicate topic id."))
    found = _resolve(
        context,
        [name for name, count in name_counts.items() if count == 1],
        [topic_id for topic_id, count in id_counts.items() if count == 1],
        {topic_id for topic_id, count in id_counts.items() if count > 1},
        results,
    )
    removed: list[Any] = []
    for topic_id, name in found.items():
        removed.append(records.RemoveTopicRecord(topic_id=topic_id))
        results.append(wire.DeletableTopicResult(name=name, topic_id=topic_id))
    return Outcome(removed, wire.Response(responses=results))


def _resolve(
    context: DecisionContext,
    names: list[str],
    ids: list[Uuid],
    ambiguous: set[Uuid],
    results: list[wire.DeletableTopicResult],
) -> dict[Uuid, str]:
    """Existing topics named exactly once; errors for the others go to `results`."""
    image = context.image
    found: dict[Uuid, str] = {}
    for topic_id in ids:
        topic = image.topics_by_id.get(topic_id)
        if topic is None:
            results.append(_failed(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            found[topic_id] = topic.name
    for name in names:
        topic = image.topics_by_name.get(name)
        if topic is None:
            results.append(_failed(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif topic.id in found or topic.id in ambiguous:
            ambiguous.add(topic.id)
            found.pop(topic.id, None)
            sentence = "The provided topic name maps to an ID that was already supplied."
            results.append(_invalid(name, topic.id, sentence))
        else:
            found[topic.id] = name
    return found


# Kafka's default error messages.
_SENTENCES = {
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def _invalid(name: str | None, topic_id: Uuid, message: str) -> wire.DeletableTopicResult:
    return _failed(name, topic_id, ErrorCode.INVALID_REQUEST, message)


def _failed(
    name: str | None, topic_id: Uuid, code: ErrorCode, message: str | None = None
) -> wire.DeletableTopicResult:
    return wire.DeletableTopicResult(
        name=name,
        topic_id=topic_id,
        error_code=code,
        error_message=message or _SENTENCES[code],
    )
