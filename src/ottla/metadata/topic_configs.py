"""The configs that count for a topic, and where each comes from."""

from collections.abc import Iterator, Mapping
from typing import Final

from ottla.metadata.cluster import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.metadata.configs.catalogue import BROKER_SYNONYMS, TOPIC_CONFIGS, TOPIC_SYNONYMS
from ottla.metadata.decisions import Surroundings
from ottla.protocol.messages.create_topics import CreatableTopicConfigs

# Kafka's numbers for where a config's value comes from.
FROM_TOPIC: Final = 1
FROM_BROKER: Final = 2
FROM_CLUSTER: Final = 3
FROM_FILE: Final = 4
FROM_DEFAULT: Final = 5


def effective_config(around: Surroundings, topic: str, key: str) -> str | None:
    """The value that counts for a topic: its own, the broker's, the cluster's, or the default."""
    own = around.image.config_of(TOPIC_RESOURCE, topic)
    return _effective(around, own, key)[0]


def created_configs(around: Surroundings, own: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    """All configs of a topic that is created with `own`, as CreateTopics answers them."""
    configs = []
    for key in sorted(TOPIC_CONFIGS):
        definition = TOPIC_CONFIGS[key]
        if definition.is_internal or key.startswith("ottla."):
            continue
        value, source = _effective(around, own, key)
        configs.append(
            CreatableTopicConfigs(
                name=key,
                value=None if definition.is_sensitive else value,
                read_only=False,
                config_source=source,
                is_sensitive=definition.is_sensitive,
            )
        )
    return configs


def _effective(around: Surroundings, own: Mapping[str, str], key: str) -> tuple[str | None, int]:
    if key in own:
        return own[key], FROM_TOPIC
    for layer, source in _layers(around):
        for name, factor in _broker_names(key):
            value = layer.get(name)
            if value is not None:
                return (value if factor == 1 else str(int(value) * factor)), source
    return TOPIC_CONFIGS[key].default, FROM_DEFAULT


def _layers(around: Surroundings) -> Iterator[tuple[Mapping[str, str], int]]:
    image, settings = around.image, around.settings
    yield image.config_of(BROKER_RESOURCE, str(settings.node_id)), FROM_BROKER
    yield image.config_of(BROKER_RESOURCE, ""), FROM_CLUSTER
    yield settings.broker_configs, FROM_FILE


def _broker_names(key: str) -> tuple[tuple[str, int], ...]:
    """The broker configs that give a topic config its default, and what turns them into ms."""
    broker_name = TOPIC_SYNONYMS.get(key)
    if broker_name is None:
        return ()
    for group in BROKER_SYNONYMS:
        if group[0][0] == broker_name:
            return group
    return ((broker_name, 1),)
