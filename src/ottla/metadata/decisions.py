"""What every decision of the controller depends on: the image, the settings, chance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.metadata.image import ClusterImage
from ottla.model.types import NodeId, Uuid


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    node_id: NodeId
    partitions_default: int = 1
    replication_factor_default: int = 1
    broker_session_timeout_ms: int = 9000
    # The controller's own server.properties, as far as it was set: topics take defaults from it.
    broker_configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surroundings:
    image: ClusterImage
    settings: ControllerSettings
    below: Callable[[int], int]  # A random number from 0 up to, not including, the argument.
    new_uuid: Callable[[], Uuid]


class Outcome(NamedTuple):
    records: list[Any]
    response: Any


def is_active(image: ClusterImage, node: NodeId) -> bool:
    broker = image.brokers.get(node)
    return broker is not None and broker.is_active
