"""The decision of CreateTopics: names, configs, replicas, and Kafka's answers.

Topics of a request succeed or fail independently; the successful ones are written in one batch.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ottla.metadata.configs.alteration import check_topic_configs
from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.decisions.partition_assignment import (
    RECORDS_MAX,
    NewPartitions,
    assigned,
    check_assignment,
    check_count,
    partition_records,
)
from ottla.metadata.decisions.topic_configs import CreatedConfigs
from ottla.metadata.image.cluster import METADATA_TOPIC, TOPIC_RESOURCE, Partition
from ottla.metadata.image.topic_names import can_collide, fault_of, unified
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import create_topics as wire

DEFAULT = -1  # Partition or replica count: use the broker's default.


def create_topics(context: DecisionContext, request: wire.Request) -> Outcome:
    check_total(request.topics, context.settings.partitions_default)
    counts = Counter(topic.name for topic in request.topics)
    taken = _collidable_names(context, request)
    written: list[Any] = []
    results: list[wire.CreatableTopicResult] = []
    late: dict[str, wire.CreatableTopicResult] = {}  # Kafka lists these after all others.
    described, new = CreatedConfigs(context), NewPartitions(context)
    for topic in request.topics:
        name = topic.name
        if counts[name] > 1:
            late[name] = _failed(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        elif name == METADATA_TOPIC:
            message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
            late[name] = _failed(name, ErrorCode.INVALID_REQUEST, message)
        else:
            try:
                created, result = _create(context, topic, taken, described, new)
            except Refusal as refusal:
                results.append(_failed(name, refusal.code, refusal.message))
            else:
                written += created
                results.append(result)
    response = wire.Response(topics=[*results, *late.values()])
    return Outcome([] if request.validate_only else written, response)


def check_total(topics: Iterable[wire.CreatableTopic], partitions_default: int) -> None:
    """Refuse more partitions than fit one batch of records."""
    check_count(sum(partition_count(topic, partitions_default) for topic in topics))


def partition_count(topic: wire.CreatableTopic, partitions_default: int) -> int:
    """Number of requested partitions."""
    if topic.assignments:
        return len(topic.assignments)
    if topic.num_partitions == DEFAULT:
        return partitions_default
    return max(topic.num_partitions, 0)


def _collidable_names(context: DecisionContext, request: wire.Request) -> dict[str, str]:
    if not any(can_collide(topic.name) for topic in request.topics):
        return {}
    return {unified(name): name for name in context.image.topics_by_name if can_collide(name)}


def _create(
    context: DecisionContext,
    topic: wire.CreatableTopic,
    taken: Mapping[str, str],
    described: CreatedConfigs,
    new: NewPartitions,
) -> tuple[list[Any], wire.CreatableTopicResult]:
    _check_name(context, topic.name, taken)
    configs = _configs(context, topic)
    partitions = _partitions(context, topic, new)
    topic_id = context.new_uuid()
    created: list[Any] = [records.TopicRecord(name=topic.name, topic_id=topic_id)]
    created += [
        records.ConfigRecord(
            resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value
        )
        for name, value in configs.items()
    ]
    created += partition_records(context.image, topic_id, partitions)
    result = wire.CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=described.of(configs),
    )
    return created, result


def _check_name(context: DecisionContext, name: str, taken: Mapping[str, str]) -> None:
    if name in context.image.topics_by_name:
        raise Refusal(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if can_collide(name) and unified(name) in taken:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{name}' collides with existing topic: {taken[unified(name)]}",
        )
    if fault := fault_of(name):
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")


def _configs(context: DecisionContext, topic: wire.CreatableTopic) -> dict[str, str]:
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    configs = {config.name: config.value for config in topic.configs if config.value is not None}
    check_topic_configs(configs, context.settings.broker_configs)
    return configs


def _partitions(
    context: DecisionContext, topic: wire.CreatableTopic, new: NewPartitions
) -> list[Partition]:
    if topic.assignments:
        return _assigned(context, topic)
    if topic.replication_factor < DEFAULT or topic.replication_factor == 0:
        raise Refusal(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < DEFAULT or topic.num_partitions == 0:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    settings = context.settings
    count, factor = topic.num_partitions, topic.replication_factor
    if count == DEFAULT:
        count = settings.partitions_default
    if factor == DEFAULT:
        factor = settings.replication_factor_default
    try:
        return new.place(count, factor)
    except Refusal as refusal:
        if refusal.message is None or refusal.message.startswith("Unable to replicate"):
            raise
        message = f"Unable to replicate the partition {factor} time(s): {refusal.message}"
        raise Refusal(refusal.code, message) from None


def _assigned(context: DecisionContext, topic: wire.CreatableTopic) -> list[Partition]:
    for value, what in (
        (topic.replication_factor, "replication factor"),
        (topic.num_partitions, "numPartitions"),
    ):
        if value != DEFAULT:
            raise Refusal(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    partitions: dict[int, Partition] = {}
    factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in partitions:
            raise Refusal(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_assignment(context.image, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        partitions[index] = assigned(context.image, index, assignment.broker_ids)
    if sorted(partitions) != list(range(len(partitions))):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    assert len(partitions) <= RECORDS_MAX, "the total was checked before"
    return [partitions[index] for index in sorted(partitions)]


def _failed(name: str, code: ErrorCode, message: str | None) -> wire.CreatableTopicResult:
    return wire.CreatableTopicResult(name=name, error_code=code, error_message=message)
