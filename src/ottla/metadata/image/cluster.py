"""Parts of a cluster: topics with their partitions, brokers, controllers.

All values are immutable once published.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.model.types import NodeId, Offset, Uuid

NO_LEADER: Final = NodeId(-1)
LEADER_UNCHANGED: Final = -2

RECOVERED, RECOVERING = 0, 1  # Leader recovery state: RECOVERING after an unclean election.
RECOVERY_UNCHANGED: Final = -1

# Directory ids below 100 are reserved; Kafka defines the first three.
MIGRATING_DIRECTORY: Final = (0).to_bytes(16)
UNASSIGNED_DIRECTORY: Final = (1).to_bytes(16)
LOST_DIRECTORY: Final = (2).to_bytes(16)

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = (1).to_bytes(16)
INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)

# Resource types of config records.
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = 8, 16, 32


class Partition(NamedTuple):
    leader: NodeId
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    directories: tuple[Uuid, ...] = ()  # Directory id of each of `replicas`, in the same order.
    leader_recovery_state: int = RECOVERED

    def has_others_in_sync(self, node: NodeId) -> bool:
        """Whether the ISR has a member other than `node`."""
        return any(other != node for other in self.isr)

    def directory_of(self, node: NodeId) -> Uuid:
        """The directory id of this node's replica, or a reserved id."""
        for replica, directory in zip(self.replicas, self.directories, strict=False):
            if replica == node:
                return directory
        return UNASSIGNED_DIRECTORY


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    id: Uuid
    partitions: dict[int, Partition]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


class Endpoint(NamedTuple):
    host: str
    port: int
    security_protocol: int = 0


class VersionRange(NamedTuple):
    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class Broker:
    id: NodeId
    epoch: Offset
    incarnation_id: Uuid
    endpoints: dict[str, Endpoint]  # By listener name.
    features: dict[str, VersionRange]
    rack: str | None = None
    is_fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[Uuid, ...] = ()
    cordoned_directories: tuple[Uuid, ...] | None = None
    is_migrating_zk: bool = False
    # Offset of the registration record, or end offset of the snapshot that it was read from.
    registered_at: Offset = field(default=-1, compare=False)

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and be in an ISR."""
        return not self.is_fenced and not self.in_controlled_shutdown

    def has_disk_of(self, partition: Partition) -> bool:
        """Whether the log directory of its replica is online, as far as the controller knows."""
        directory = partition.directory_of(self.id)
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        return directory in self.directories

    @property
    def default_directory(self) -> Uuid:
        """Directory for a new replica: the only one, or unassigned, since the broker picks among
        several.
        """
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY


@dataclass(frozen=True, slots=True)
class ControllerNode:
    id: NodeId
    incarnation_id: Uuid
    endpoints: dict[str, Endpoint]
    features: dict[str, VersionRange]
    is_zk_migration_ready: bool = False


class ProducerIds(NamedTuple):
    """The last allocated block of producer ids: ids below `next_id` are taken."""

    broker_id: int = -1
    broker_epoch: int = -1
    next_id: int = 0
