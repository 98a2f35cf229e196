"""AlterConfigs and IncrementalAlterConfigs as the controller decides them.

A resource changes as a whole or not at all; resources of one request are independent. What a
broker checks before it forwards the request is checked here too, since here both are one.
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
from ottla.metadata.decisions.context import Outcome, Surroundings
from ottla.metadata.decisions.elr_clearing import ALL_TOPICS, MIN_ISR, cleared
from ottla.metadata.image.cluster import (
    BROKER_LOGGER_RESOURCE,
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

VALUE_BYTES_MAX: Final = (1 << 15) - 1  # Of a config's value, as Kafka's own records allow it.

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
    around: Surroundings, request: incremental_alter_configs.Request
) -> Outcome:
    written, answers = _alter_each(around, request.resources, _incremental)
    response = incremental_alter_configs.Response(
        responses=[
            incremental_alter_configs.AlterConfigsResourceResponse(
                code, message, resource.resource_type, resource.resource_name
            )
            for resource, code, message in answers
        ]
    )
    return Outcome([] if request.validate_only else written, response)


def replace_configs(around: Surroundings, request: alter_configs.Request) -> Outcome:
    """The older API: what is not named goes back to its default."""
    written, answers = _alter_each(around, request.resources, _replacement)
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
    around: Surroundings,
    resources: Sequence[R],
    changes_of: Callable[[Surroundings, R], dict[str, str | None]],
) -> tuple[list[Any], list[tuple[R, ErrorCode, str | None]]]:
    counts = Counter((r.resource_type, r.resource_name) for r in resources)
    written: list[Any] = []
    answers: list[tuple[R, ErrorCode, str | None]] = []
    for resource in resources:
        try:
            if counts[(resource.resource_type, resource.resource_name)] > 1:
                raise _invalid("Each resource must appear at most once.")
            _check_keys(resource)
            _check_resource(around, resource)
            changes = changes_of(around, resource)
            _check_changes(around, resource, changes)
        except Refusal as refusal:
            answers.append((resource, refusal.code, refusal.message))
        else:
            written += _records(around, resource, changes)
            answers.append((resource, ErrorCode.NONE, None))
    return written, answers


def _check_keys(resource: _Resource) -> None:
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


def _check_resource(around: Surroundings, resource: _Resource) -> None:
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC_RESOURCE:
        if not name:
            raise _invalid("Default topic resources are not allowed.")
        if fault := fault_of(name):
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")
    elif kind == BROKER_RESOURCE:
        if name:
            _check_broker_name(around, name)
    elif kind == GROUP_RESOURCE:
        if not name:
            raise _invalid("Default group resources are not allowed.")
    elif kind == BROKER_LOGGER_RESOURCE:
        raise _invalid("Log levels cannot be changed while the broker runs: set them at start.")
    elif kind != CLIENT_METRICS_RESOURCE:
        raise _invalid(f"Unknown resource type {kind}")


def _check_broker_name(around: Surroundings, name: str) -> None:
    try:
        node_id = NodeId(parse_integer(name, NODE_ID_BITS))
    except ValueError:
        raise _invalid(f"Node id must be an integer, but it is: {name}") from None
    if node_id not in around.image.brokers:
        expected = around.settings.node_id
        raise _invalid(f"Unexpected broker id, expected {expected}, but received {name}")


def _incremental(
    around: Surroundings, resource: incremental_alter_configs.AlterConfigsResource
) -> dict[str, str | None]:
    current = around.image.config_of(resource.resource_type, resource.resource_name)
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
    around: Surroundings, resource: alter_configs.AlterConfigsResource
) -> dict[str, str | None]:
    changes: dict[str, str | None] = {config.name: config.value for config in resource.configs}
    for name in around.image.config_of(resource.resource_type, resource.resource_name):
        changes.setdefault(name, None)
    return changes


def _check_changes(
    around: Surroundings, resource: _Resource, changes: Mapping[str, str | None]
) -> None:
    kind, name = resource.resource_type, resource.resource_name
    after = dict(around.image.config_of(kind, name))
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
        check_topic_configs(after, around.settings.broker_configs)
        if name not in around.image.topics_by_name:
            raise Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
    elif kind == GROUP_RESOURCE:
        check_group_configs(after, around.settings.broker_configs)
    elif kind == BROKER_RESOURCE:
        check_broker_configs(after, is_cluster_default=not name)
        if is_elr_enabled(around.image.features):
            _check_isr_min(name, changes)


def _check_isr_min(name: str, changes: Mapping[str, str | None]) -> None:
    """With eligible leader replicas on, the cluster's minimum has to be one and the same."""
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
    around: Surroundings, resource: _Resource, changes: Mapping[str, str | None]
) -> list[Any]:
    kind, name = resource.resource_type, resource.resource_name
    current = around.image.config_of(kind, name)
    written: list[Any] = []
    for key, value in changes.items():
        # A broker takes even the same value as a sign to read its files anew (KAFKA-14136).
        if kind != BROKER_RESOURCE and current.get(key) == value:
            continue
        written.append(
            records.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)
        )
        if key == MIN_ISR and is_elr_enabled(around.image.features):
            written += cleared(around.image, name if kind == TOPIC_RESOURCE else ALL_TOPICS)
    return written


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
