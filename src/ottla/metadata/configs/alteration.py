"""Changes to configs: the new value after an operation, and Kafka's checks of it.

Used by the controller (CreateTopics, AlterConfigs, IncrementalAlterConfigs) and by the broker that
receives the request. A refusal names the config and says what is allowed.
"""

from collections.abc import Mapping
from enum import IntEnum

from ottla.metadata.configs.catalogue import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    is_not_built,
)
from ottla.metadata.configs.definition import (
    ConfigType,
    ConfigValueError,
    Definition,
    Service,
    Update,
    as_text,
)
from ottla.model.errors import ErrorCode, Refusal

# Kafka can change its listeners while it runs; here they are fixed at start.
_FIXED_AT_START = frozenset({"listeners", "listener.security.protocol.map"})


class Operation(IntEnum):
    """The operations of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def altered(
    definitions: Mapping[str, Definition],
    name: str,
    operation: Operation,
    *,
    current: str | None,
    operand: str | None,
) -> str | None:
    """The value after `operation`; None if the config is removed."""
    if operation is Operation.DELETE:
        return None
    assert operand is not None, "only a deletion has no value"
    if operation is Operation.SET:
        return operand
    definition = definitions.get(name)
    if definition is None or definition.type is not ConfigType.LIST:
        message = f"Can't {operation.name} to key {name} because its type is not LIST."
        raise Refusal(ErrorCode.INVALID_CONFIG, message)
    before = (definition.default or "") if current is None else current
    items = [item for item in before.split(",") if item]
    for item in operand.split(","):
        if operation is Operation.APPEND and item not in items:
            items.append(item)
        elif operation is Operation.SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def check_topic_configs(
    configs: Mapping[str, str], broker_defaults: Mapping[str, str] | None = None
) -> None:
    """Raise INVALID_CONFIG unless a topic may have `configs`.

    `broker_defaults` are the broker's own values by broker config name, where they are set.
    """
    for name, value in configs.items():
        definition = TOPIC_CONFIGS.get(name)
        if definition is None:
            raise Refusal(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
        _check_value(definition, value)
        if definition.service is Service.NOT_BUILT and _asks_for_more(definition, value):
            message = f"{name}={value} is not built in this broker; leave it at its default."
            raise Refusal(ErrorCode.INVALID_CONFIG, message)
    _check_compaction_lags(configs, broker_defaults or {})


def check_broker_configs(configs: Mapping[str, str], *, is_cluster_default: bool) -> None:
    """Raise unless `configs` may be set while brokers run: for one, or as the cluster default.

    As in Kafka, unknown names are accepted: a plugin may read them.
    """
    for name, value in configs.items():
        if is_not_built(name):
            message = f"{name} is not built in this broker, so it cannot be set."
            raise Refusal(ErrorCode.INVALID_REQUEST, message)
        definition = BROKER_CONFIGS.get(name)
        if definition is None:
            continue
        if definition.update is Update.READ_ONLY:
            message = f"Cannot update these configs dynamically: {name}"
            raise Refusal(ErrorCode.INVALID_REQUEST, message)
        if name in _FIXED_AT_START and not is_cluster_default:
            message = f"{name} cannot be changed while this broker runs: set it at start."
            raise Refusal(ErrorCode.INVALID_REQUEST, message)
        if definition.update is Update.PER_BROKER and is_cluster_default:
            message = f"{name} cannot be a default of the cluster: say for which broker it is."
            raise Refusal(ErrorCode.INVALID_REQUEST, message)
        try:
            _check_value(definition, value)
        except Refusal as refusal:
            # Kafka answers INVALID_REQUEST here, and clients rely on it (KAFKA-13609).
            raise Refusal(ErrorCode.INVALID_REQUEST, refusal.message) from None
        if name == "log.retention.ms" and definition.parse(value) == 0:
            message = f"Invalid value 0 for configuration {name}: must be -1 or at least 1"
            raise Refusal(ErrorCode.INVALID_REQUEST, message)


def _check_value(definition: Definition, value: str) -> None:
    try:
        definition.parse(value)
    except ConfigValueError as error:
        message = f"Invalid value {value} for configuration {definition.name}: {error}"
        raise Refusal(ErrorCode.INVALID_CONFIG, message) from None


def _asks_for_more(definition: Definition, value: str) -> bool:
    return as_text(definition.parse(value)) != as_text(definition.default_value())


def _check_compaction_lags(configs: Mapping[str, str], broker_defaults: Mapping[str, str]) -> None:
    lags = []
    for name in ("min.compaction.lag.ms", "max.compaction.lag.ms"):
        text = configs.get(name) or broker_defaults.get(TOPIC_SYNONYMS[name])
        lags.append(int(text or TOPIC_CONFIGS[name].default or 0))
    shortest, longest = lags
    if shortest > longest:
        message = (
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > "
            f"max.compaction.lag.ms ({longest})"
        )
        raise Refusal(ErrorCode.INVALID_CONFIG, message)
