"""DescribeConfigs: each config's value, its source and its synonyms.

A value comes from the first layer that sets it: topic, this broker, cluster default, settings file,
Kafka's default. The synonyms of a config are these layers in that order, under the names they are
set by.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from ottla.metadata.configs.catalogue import (
    BROKER_CONFIGS,
    BROKER_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    synonyms_of,
)
from ottla.metadata.configs.definition import (
    ConfigType,
    ConfigValueError,
    Definition,
    Update,
    as_text,
)
from ottla.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)


class Source(IntEnum):
    """Source of a value, by the numbers of DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    CLUSTER_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class Layers:
    """The broker's configs as text by name, highest precedence first, above Kafka's defaults."""

    this_broker: Mapping[str, str]
    cluster_default: Mapping[str, str]
    static: Mapping[str, str]

    def synonyms(self, name: str) -> list[DescribeConfigsSynonym]:
        """All layers that set a broker config, in order of precedence."""
        names = synonyms_of(name)
        found = [
            DescribeConfigsSynonym(
                other, None if _is_sensitive(other) else layer[other], int(source)
            )
            for layer, source in (
                (self.this_broker, Source.BROKER),
                (self.cluster_default, Source.CLUSTER_DEFAULT),
                (self.static, Source.STATIC),
            )
            for other in names
            if other in layer
        ]
        for other in names:
            definition = BROKER_CONFIGS.get(other)
            if definition is not None and definition.default is not None:
                found.append(DescribeConfigsSynonym(other, definition.default, int(Source.DEFAULT)))
        # As Kafka does: layers of higher precedence under another name are left out.
        first = next((i for i, synonym in enumerate(found) if synonym.name == name), len(found))
        return found[first:]

    def text(self, name: str) -> str | None:
        for layer in (self.this_broker, self.cluster_default, self.static):
            if name in layer:
                return layer[name]
        definition = BROKER_CONFIGS.get(name)
        return definition.default if definition is not None else None


def describe_topic(
    layers: Layers, overrides: Mapping[str, str]
) -> Iterator[DescribeConfigsResourceResult]:
    """All configs of a topic."""
    for name, definition in TOPIC_CONFIGS.items():
        if definition.is_internal and name not in overrides:
            continue
        synonyms = layers.synonyms(TOPIC_SYNONYMS[name]) if name in TOPIC_SYNONYMS else []
        value = printed(definition, overrides.get(name, topic_default(layers, name)))
        if name in overrides:
            synonyms.insert(0, DescribeConfigsSynonym(name, value, int(Source.TOPIC)))
        yield _result(name, definition, value, synonyms, is_read_only=False)


def describe_broker(layers: Layers) -> Iterator[DescribeConfigsResourceResult]:
    """All configs of a broker, and unknown ones of its settings file."""
    others = {**layers.static, **layers.cluster_default, **layers.this_broker}
    names = [name for name, d in BROKER_CONFIGS.items() if not d.is_internal or name in others]
    names += [name for name in others if name not in BROKER_CONFIGS]
    for name in names:
        yield _broker_result(layers, name, layers.synonyms(name))


def describe_cluster_default(layers: Layers) -> Iterator[DescribeConfigsResourceResult]:
    """Only configs set as the cluster default."""
    only = Layers({}, layers.cluster_default, {})
    for name in layers.cluster_default:
        set_here = [s for s in only.synonyms(name) if s.source == Source.CLUSTER_DEFAULT]
        yield _broker_result(only, name, set_here)


def topic_default(layers: Layers, name: str) -> str | None:
    """The value of a topic config that the topic does not set."""
    broker_name = TOPIC_SYNONYMS.get(name)
    if broker_name is None:
        return TOPIC_CONFIGS[name].default
    for group in BROKER_SYNONYMS:
        if group[0][0] == broker_name:
            for other, factor in group:
                text = layers.text(other)
                if text is not None:
                    return text if factor == 1 or int(text) < 0 else str(int(text) * factor)
    return layers.text(broker_name)


def _broker_result(
    layers: Layers, name: str, synonyms: list[DescribeConfigsSynonym]
) -> DescribeConfigsResourceResult:
    definition = BROKER_CONFIGS.get(name)
    text = layers.text(name)
    value = printed(definition, text) if definition is not None else text
    is_read_only = definition is None or definition.update is Update.READ_ONLY
    return _result(name, definition, value, synonyms, is_read_only=is_read_only)


def _result(
    name: str,
    definition: Definition | None,
    value: str | None,
    synonyms: list[DescribeConfigsSynonym],
    *,
    is_read_only: bool,
) -> DescribeConfigsResourceResult:
    # Unknown configs are treated as sensitive, as in Kafka.
    is_sensitive = definition is None or definition.is_sensitive
    return DescribeConfigsResourceResult(
        name=name,
        value=None if is_sensitive else value,
        read_only=is_read_only,
        config_source=synonyms[0].source if synonyms else int(Source.DEFAULT),
        is_sensitive=is_sensitive,
        synonyms=synonyms,
        config_type=definition.type.value if definition is not None else 0,
        documentation=definition.documentation if definition is not None else None,
    )


def printed(definition: Definition, text: str | None) -> str | None:
    """A value as Kafka shows it."""
    try:
        return as_text(definition.parse(text))
    except ConfigValueError:
        # Only a directory written by another version can hold an invalid value; show it unchanged.
        return text


def _is_sensitive(name: str) -> bool:
    definition = BROKER_CONFIGS.get(name)
    return definition is None or definition.type is ConfigType.PASSWORD
