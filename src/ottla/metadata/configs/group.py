"""Configs of single groups: definitions, the broker's bounds for them, descriptions.

The default of a group config is the broker's config with the prefix `group.`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.metadata.configs.catalogue import BROKER_CONFIGS
from ottla.metadata.configs.definition import (
    ConfigValueError,
    Definition,
    as_text,
    parse_table,
)
from ottla.metadata.configs.description import Layers, Source
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

DEFINITIONS: Final = parse_table("""
consumer.assignment.interval.ms int 1000 >=0 medium served group
    The shortest time between two assignments of the consumer group.
consumer.heartbeat.interval.ms int 5000 >=1 medium served group
    How often members of the consumer group send a heartbeat.
consumer.session.timeout.ms int 45000 >=1 medium served group
    How long the consumer group waits for a member's heartbeat.
share.assignment.interval.ms int 1000 >=0 medium irrelevant group
    The shortest time between two assignments of the share group.
share.auto.offset.reset string latest any medium irrelevant group
    Where a share group begins to read: earliest, latest or by_duration:<ISO 8601 duration>.
share.delivery.count.limit int 5 >=1 medium irrelevant group
    How often a record is delivered to the share group at most.
share.heartbeat.interval.ms int 5000 >=1 medium irrelevant group
    How often members of the share group send a heartbeat.
share.isolation.level string read_uncommitted {read_committed,read_uncommitted}
    medium irrelevant group
    Whether the share group sees records of transactions that are not committed.
share.partition.max.record.locks int 2000 >=1 medium irrelevant group
    Records of a partition that the share group may hold at a time.
share.record.lock.duration.ms int 30000 >=1 medium irrelevant group
    How long a member of the share group holds a record.
share.renew.acknowledge.enable boolean true any medium irrelevant group
    Whether members of the share group may hold a record for longer.
share.session.timeout.ms int 45000 >=1 medium irrelevant group
    How long the share group waits for a member's heartbeat.
streams.assignment.interval.ms int 1000 >=0 medium irrelevant group
    The shortest time between two assignments of the streams group.
streams.heartbeat.interval.ms int 5000 >=1 medium irrelevant group
    How often members of the streams group send a heartbeat.
streams.initial.rebalance.delay.ms int 3000 >=0 medium irrelevant group
    How long a new streams group waits for more members.
streams.num.standby.replicas int 0 >=0 medium irrelevant group
    Standby replicas of each task of the streams group.
streams.session.timeout.ms int 45000 >=1 medium irrelevant group
    How long the streams group waits for a member's heartbeat.
""")
GROUP_CONFIGS: Final[dict[str, Definition]] = {one.name: one for one in DEFINITIONS}


def check_group_configs(configs: Mapping[str, str], broker_configs: Mapping[str, str]) -> None:
    """Raise INVALID_CONFIG unless a group may have `configs`.

    `broker_configs` are the broker's own values by name, where they are set.
    """
    for name, text in configs.items():
        definition = GROUP_CONFIGS.get(name)
        if definition is None:
            raise _invalid(f"Unknown group config name: {name}")
        try:
            value = definition.parse(text)
        except ConfigValueError as error:
            raise _invalid(f"Invalid value {text} for configuration {name}: {error}") from None
        if name == "share.auto.offset.reset":
            _check_reset(text)
        if isinstance(value, int):
            _check_bounds(name, value, broker_configs)
    for kind in ("consumer", "share", "streams"):
        names = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        session, heartbeat = (
            int(configs.get(name) or _broker_text(name, broker_configs)) for name in names
        )
        if session <= heartbeat:
            raise _invalid(f"{names[0]} must be greater than {names[1]}")


def describe_group(
    layers: Layers, overrides: Mapping[str, str]
) -> Iterator[DescribeConfigsResourceResult]:
    """All configs of a group, whether it exists or not."""
    for name, definition in GROUP_CONFIGS.items():
        broker_name = f"group.{name}"
        if broker_name in BROKER_CONFIGS:
            synonyms = layers.synonyms(broker_name)
        else:
            default = DescribeConfigsSynonym(name, definition.default, int(Source.DEFAULT))
            synonyms = [default]
        text = overrides.get(name)
        if text is not None:
            synonyms.insert(0, DescribeConfigsSynonym(name, text, int(Source.GROUP)))
        yield DescribeConfigsResourceResult(
            name=name,
            value=synonyms[0].value,
            read_only=False,
            config_source=synonyms[0].source,
            is_sensitive=False,
            synonyms=synonyms,
            config_type=definition.type.value,
            documentation=definition.documentation,
        )


def _check_bounds(name: str, value: int, broker_configs: Mapping[str, str]) -> None:
    lowest, highest = _bound(name, "min"), _bound(name, "max")
    if lowest in BROKER_CONFIGS and value < int(_text(lowest, broker_configs)):
        raise _invalid(f"{name} must be greater than or equal to {lowest}")
    if highest in BROKER_CONFIGS and value > int(_text(highest, broker_configs)):
        raise _invalid(f"{name} must be less than or equal to {highest}")


def _check_reset(text: str) -> None:
    if text.lower() not in ("earliest", "latest") and not text.lower().startswith("by_duration:p"):
        message = "must be earliest, latest or by_duration:<ISO 8601 duration>"
        raise _invalid(f"Invalid value {text} for configuration share.auto.offset.reset: {message}")


def _bound(name: str, which: str) -> str:
    """The broker config that bounds a group config."""
    kind, rest = name.split(".", 1)
    return f"group.{kind}.{which}.{rest.removeprefix('num.')}"


def _broker_text(name: str, broker_configs: Mapping[str, str]) -> str:
    return _text(f"group.{name}", broker_configs)


def _text(name: str, broker_configs: Mapping[str, str]) -> str:
    text = broker_configs.get(name) or as_text(BROKER_CONFIGS[name].default_value())
    assert text is not None, "all of these have a default"
    return text


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, message)
