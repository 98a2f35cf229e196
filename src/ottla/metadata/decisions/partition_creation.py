"""The decision of CreatePartitions: a topic can only grow."""

from collections import Counter
from typing import Any

from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.decisions.partition_assignment import (
    NewPartitions,
    assigned,
    check_assignment,
    check_count,
    partition_records,
)
from ottla.metadata.image.cluster import Partition, Topic
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import create_partitions as wire


def create_partitions(context: DecisionContext, request: wire.Request) -> Outcome:
    counts = Counter(topic.name for topic in request.topics)
    results: list[wire.CreatePartitionsTopicResult] = []
    duplicates: set[str] = set()
    written: list[Any] = []
    new = NewPartitions(context)
    for topic in request.topics:
        if counts[topic.name] > 1:
            if topic.name not in duplicates:
                duplicates.add(topic.name)
                message = "Duplicate topic name."
                results.append(_result(topic.name, ErrorCode.INVALID_REQUEST, message))
            continue
        try:
            written += _grow(context, topic, new)
        except Refusal as refusal:
            results.append(_result(topic.name, refusal.code, refusal.message))
        else:
            results.append(_result(topic.name, ErrorCode.NONE, None))
    return Outcome([] if request.validate_only else written, wire.Response(results=results))


def _grow(
    context: DecisionContext, grown: wire.CreatePartitionsTopic, new: NewPartitions
) -> list[Any]:
    image = context.image
    topic = image.topics_by_name.get(grown.name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    have = len(topic.partitions)
    if grown.count == have:
        message = f"Topic already has {have} partition(s)."
        raise Refusal(ErrorCode.INVALID_PARTITIONS, message)
    if grown.count < have:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {grown.name} currently has {have} partition(s); "
            f"{grown.count} would not be an increase.",
        )
    additional = grown.count - have
    check_count(additional)
    if grown.assignments is None:
        factor = len(topic.partitions[0].replicas)
        partitions = new.place(additional, factor)
    else:
        partitions = _assigned(context, topic, grown, additional)
    return partition_records(image, topic.id, partitions, first_index=have)


def _assigned(
    context: DecisionContext, topic: Topic, grown: wire.CreatePartitionsTopic, additional: int
) -> list[Partition]:
    assignments = grown.assignments or []
    if len(assignments) != additional:
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(assignments)} assignment(s) were specified.",
        )
    factor = len(topic.partitions[0].replicas)
    first = len(topic.partitions)
    partitions = []
    for index, assignment in enumerate(assignments, first):
        check_assignment(context.image, assignment.broker_ids, factor)
        partitions.append(assigned(context.image, index, assignment.broker_ids))
    return partitions


def _result(name: str, code: ErrorCode, message: str | None) -> wire.CreatePartitionsTopicResult:
    return wire.CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
