"""The configs that count for a topic, as the controller sees them."""

from collections.abc import Mapping

from ottla.metadata.cluster import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.metadata.configs.catalogue import TOPIC_CONFIGS
from ottla.metadata.configs.description import Layers, describe_topic, topic_default
from ottla.metadata.decisions import Surroundings
from ottla.protocol.messages.create_topics import CreatableTopicConfigs


def effective_config(around: Surroundings, topic: str, name: str) -> str | None:
    """The value that counts for a topic: its own, the broker's, the cluster's, or the default."""
    own = around.image.config_of(TOPIC_RESOURCE, topic).get(name)
    return topic_default(layers(around), name) if own is None else own


def created_configs(around: Surroundings, own: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    """All configs of a topic that is created with `own`, as CreateTopics answers them."""
    described = describe_topic(layers(around), own)
    return [
        CreatableTopicConfigs(
            name=config.name,
            value=config.value,
            read_only=config.read_only,
            config_source=config.config_source,
            is_sensitive=config.is_sensitive,
        )
        for config in sorted(described, key=lambda config: config.name)
        if not TOPIC_CONFIGS[config.name].is_internal
    ]


def layers(around: Surroundings) -> Layers:
    image, settings = around.image, around.settings
    return Layers(
        this_broker=image.config_of(BROKER_RESOURCE, str(settings.node_id)),
        cluster_default=image.config_of(BROKER_RESOURCE, ""),
        static=settings.broker_configs,
    )
