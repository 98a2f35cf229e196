"""Effective configs of a topic, as the controller sees them."""

from collections.abc import Mapping

from ottla.metadata.configs.catalogue import TOPIC_CONFIGS
from ottla.metadata.configs.description import (
    Layers,
    Source,
    describe_topic,
    printed,
    topic_default,
)
from ottla.metadata.decisions.context import DecisionContext
from ottla.metadata.image.cluster import BROKER_RESOURCE, TOPIC_RESOURCE
from ottla.protocol.messages.create_topics import CreatableTopicConfigs


def effective_config(context: DecisionContext, topic: str, name: str) -> str | None:
    """The effective value for a topic: its own, the broker's, the cluster's, or the default."""
    own = context.image.config_of(TOPIC_RESOURCE, topic).get(name)
    return topic_default(layers(context), name) if own is None else own


class CreatedConfigs:
    """All configs of topics created by one request, as CreateTopics answers them.

    The dozens of default values are computed once for all topics.
    """

    def __init__(self, context: DecisionContext) -> None:
        described = describe_topic(layers(context), {})
        self._defaults = [
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
        self._places = {config.name: place for place, config in enumerate(self._defaults)}

    def of(self, own: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """Configs of a topic created with `own`; shared, do not modify."""
        if not own:
            return self._defaults
        configs = self._defaults.copy()
        for name, value in own.items():
            place = self._places.get(name)
            if place is not None:  # Else it is internal.
                known = configs[place]
                configs[place] = CreatableTopicConfigs(
                    name=name,
                    value=None if known.is_sensitive else printed(TOPIC_CONFIGS[name], value),
                    read_only=known.read_only,
                    config_source=int(Source.TOPIC),
                    is_sensitive=known.is_sensitive,
                )
        return configs


def layers(context: DecisionContext) -> Layers:
    image, settings = context.image, context.settings
    return Layers(
        this_broker=image.config_of(BROKER_RESOURCE, str(settings.node_id)),
        cluster_default=image.config_of(BROKER_RESOURCE, ""),
        static=settings.broker_configs,
    )
