"""The context of every decision: image, settings, randomness."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ottla.metadata.image.cluster import BROKER_RESOURCE
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import NodeId, Uuid

DRAINED: Final = "ottla.drained"  # A broker config: keep no replicas on it.


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    node_id: NodeId
    partitions_default: int = 1
    replication_factor_default: int = 1
    broker_session_timeout_ms: int = 9000
    is_leadership_balanced: bool = True  # Elect preferred replicas periodically.
    leader_imbalance_check_interval_ms: int = 300_000
    unclean_election_check_interval_ms: int = 300_000
    is_rebalanced: bool = True  # Move replicas when brokers are added, lost for long or drained.
    rebalance_interval_ms: int = 10_000
    rebalance_moves_max: int = 10
    rebalance_lost_after_ms: int = 900_000
    # The controller's own server.properties: source of topic defaults.
    broker_configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DecisionContext:
    image: ClusterImage
    settings: ControllerSettings
    below: Callable[[int], int]  # A random number from 0 up to, not including, the argument.
    new_uuid: Callable[[], Uuid]
    # True if the node has contacted this controller as the process that holds its replicas.
    has_contacted: Callable[[NodeId], bool] = lambda _: True


class Outcome(NamedTuple):
    records: list[Any]
    response: Any


def is_active(image: ClusterImage, node: NodeId) -> bool:
    broker = image.brokers.get(node)
    return broker is not None and broker.is_active


def is_drained(image: ClusterImage, node: NodeId) -> bool:
    return image.config_of(BROKER_RESOURCE, str(node)).get(DRAINED) == "true"
