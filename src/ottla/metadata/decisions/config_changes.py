"""The decisions of AlterConfigs and IncrementalAlterConfigs.

A resource changes as a whole or not at all; resources of one request are independent. Checks that
Kafka's brokers make before forwarding are made here too. Loggers belong to their node, which does
not pass them on.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from ottla.metadata.configs.alteration import (
    Operation,
    altered,
    check_broker_configs,
    check_topic_configs,
)
from ottla.metadata.configs.catalogue import BROKER_CONFIGS, TOPIC_CONFIGS
from ottla.metadata.configs.group import GROUP_CONFIGS, check_group_configs
from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.decisions.elr_clearing import ALL_TOPICS, MIN_ISR, cleared
from ottla.metadata.image.cluster import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.metadata.image.features import is_elr_enabled
from ottla.metadata.image.topic_names import fault_of
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.numbers import parse_integer
from ottla.model.types import NODE_ID_BITS, NodeId
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import alter_configs, incremental_alter_configs

VALUE_BYTES_MAX: Final = (1 << 15) - 1  # Largest config value of Kafka's records.

_DEFINITIONS: Final = {
    TOPIC_RESOURCE: TOPIC_CONFIGS,
    BROKER_RESOURCE: BROKER_CONFIGS,
    GROUP_RESOURCE: GROUP_CONFIGS,
}


class _Resource(Protocol):
    resource_type: int
    resource_name: str
    configs: Any


R = TypeVar("R", bound=_Resource)


def alter_configs_incrementally(
    context: DecisionContext, request: incremental_alter_configs.Request
) -> Outcome:
    written, answers = _alter_each(context, request.resources, _incremental)
    response = incremental_alter_configs.Response(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                code, message, resource.resource_type, resource.resource_name
            )
            for resource, code, message in answers
        ]
    )
    return Outcome([] if request.validate_only else written, response)


def replace_configs(context: DecisionContext, request: alter_configs.Request) -> Outcome:
    """The older API: configs that are not named return to their defaults."""
    written, answers = _alter_each(context, request.resources, _replacement)
    response = alter_configs.Response(
        responses=[
            alter_configs.AlterConfigsResourceResponse(
                code, message, resource.resource_type, resource.resource_name
            )
            for resource, code, message in answers
        ]
    )
    return Outcome([] if request.validate_only else written, response)


def _alter_each(
    context: DecisionContext,
    resources: Sequence[R],
    changes_of: Callable[[DecisionContext, R], dict[str, str | None]],
) -> tuple[list[Any], list[tuple[R, ErrorCode, str | None]]]:
    counts = Counter((r.resource_type, r.resource_name) for r in resources)
    written: list[Any] = []
    answers: list[tuple[R, ErrorCode, str | None]] = []
    for resource in resources:
        try:
            if counts[(resource.resource_type, resource.resource_name)] > 1:
                raise _invalid("Each resource must appear at most once.")
            check_keys(resource)
            _check_resource(context, resource)
            changes = changes_of(context, resource)
            _check_changes(context, resource, changes)
        except Refusal as refusal:
            answers.append((resource, refusal.code, refusal.message))
        else:
            written += _records(context, resource, changes)
            answers.append((resource, ErrorCode.NONE, None))
    return written, answers


def check_keys(resource: _Resource) -> None:
    """Refuse a key named twice, and values that are missing."""
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise _invalid("Error due to duplicate config keys")
    nulls = [
        config.name
        for config in resource.configs
        if config.value is None and getattr(config, "config_operation", None) != Operation.DELETE
    ]
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")


def _check_resource(context: DecisionContext, resource: _Resource) -> None:
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC_RESOURCE:
        if not name:
            raise _invalid("Default topic resources are not allowed.")
        if fault := fault_of(name):
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")
    elif kind == BROKER_RESOURCE:
        if name:
            _check_broker_name(context, name)
    elif kind == GROUP_RESOURCE:
        if not name:
            raise _invalid("Default group resources are not allowed.")
    elif kind != CLIENT_METRICS_RESOURCE:
        raise _invalid(f"Unknown resource type {kind}")


def _check_broker_name(context: DecisionContext, name: str) -> None:
    try:
        node_id = NodeId(parse_integer(name, NODE_ID_BITS))
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if node_id not in context.image.brokers:
        expected = context.settings.node_id
        raise _invalid(f"Unexpected broker id, expected {expected}, but received {name}")


def _incremental(
    context: DecisionContext, resource: incremental_alter_configs.AlterConfigsResource
) -> dict[str, str | None]:
    current = context.image.config_of(resource.resource_type, resource.resource_name)
    changes: dict[str, str | None] = {}
    for config in resource.configs:
        try:
            operation = Operation(config.config_operation)
        except ValueError:
            raise _invalid(f"Unknown operations type {config.config_operation}") from None
        changes[config.name] = altered(
            _DEFINITIONS.get(resource.resource_type, {}),
            config.name,
            operation,
            current=current.get(config.name),
            operand=config.value,
        )
    return changes


def _replacement(
    context: DecisionContext, resource: alter_configs.AlterConfigsResource
) -> dict[str, str | None]:
    changes: dict[str, str | None] = {config.name: config.value for config in resource.configs}
    for name in context.image.config_of(resource.resource_type, resource.resource_name):
        changes.setdefault(name, None)
    return changes


def _check_changes(
    context: DecisionContext, resource: _Resource, changes: Mapping[str, str | None]
) -> None:
    kind, name = resource.resource_type, resource.resource_name
    after = dict(context.image.config_of(kind, name))
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        elif len(value.encode()) > VALUE_BYTES_MAX:
            raise Refusal(
                ErrorCode.INVALID_CONFIG,
                "The configuration value cannot be added because it exceeds the maximum value "
                f"size of {VALUE_BYTES_MAX} bytes.",
            )
        else:
            after[key] = value
    if kind == TOPIC_RESOURCE:
        check_topic_configs(after, context.settings.broker_configs)
        if name not in context.image.topics_by_name:
            raise Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
    elif kind == GROUP_RESOURCE:
        check_group_configs(after, context.settings.broker_configs)
    elif kind == BROKER_RESOURCE:
        check_broker_configs(after, is_cluster_default=not name)
        if is_elr_enabled(context.image.features):
            _check_isr_min(name, changes)


def _check_isr_min(name: str, changes: Mapping[str, str | None]) -> None:
    """With eligible leader replicas on, only the cluster-wide minimum may be set."""
    if MIN_ISR not in changes:
        return
    if name:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        )
    if changes[MIN_ISR] is None:
        raise Refusal(
            ErrorCode.INVALID_CONFIG,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        )


def _records(
    context: DecisionContext, resource: _Resource, changes: Mapping[str, str | None]
) -> list[Any]:
    kind, name = resource.resource_type, resource.resource_name
    current = context.image.config_of(kind, name)
    written: list[Any] = []
    for key, value in changes.items():
        # A broker reloads its files even for an unchanged value (KAFKA-14136).
        if kind != BROKER_RESOURCE and current.get(key) == value:
            continue
        written.append(
            records.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
        )
        if key == MIN_ISR and is_elr_enabled(context.image.features):
            written += cleared(context.image, name if kind == TOPIC_RESOURCE else ALL_TOPICS)
    return written


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
