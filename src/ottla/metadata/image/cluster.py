"""What a cluster consists of: topics with their partitions, brokers, controllers.

All values are immutable once published: whoever holds a `Topic` sees it as it was at that time.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ottla.model.types import NodeId, Offset, Uuid

NO_LEADER: Final = NodeId(-1)
LEADER_UNCHANGED: Final = -2

RECOVERED, RECOVERING = 0, 1  # Of a leader: RECOVERING after an unclean election.
RECOVERY_UNCHANGED: Final = -1

# Directory ids below 100 are reserved; Kafka gives a meaning to the first three.
MIGRATING_DIRECTORY: Final = (0).to_bytes(16)
UNASSIGNED_DIRECTORY: Final = (1).to_bytes(16)
LOST_DIRECTORY: Final = (2).to_bytes(16)

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = (1).to_bytes(16)
INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)

# The resource types of config records that the metadata log knows.
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
    directories: tuple[Uuid, ...] = ()  # Where each of `replicas` keeps it, in the same order.
    leader_recovery_state: int = RECOVERED

    def has_others_in_sync(self, node: NodeId) -> bool:
        """Whether somebody else is in sync with all that `node` has of it."""
        return any(other != node for other in self.isr)

    def directory_of(self, node: NodeId) -> Uuid:
        """The log directory that holds this node's replica, or one of the reserved ids."""
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
    # Offset of the registration's record, or of the end of the snapshot that it was read from.
    registered_at: Offset = field(default=-1, compare=False)

    @property
    def is_active(self) -> bool:
        """Whether it may lead partitions and count as in sync."""
        return not self.is_fenced and not self.in_controlled_shutdown

    def has_disk_of(self, partition: Partition) -> bool:
        """Whether the log directory of its replica is online, as far as anybody has said."""
        directory = partition.directory_of(self.id)
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        return directory in self.directories

    @property
    def default_directory(self) -> Uuid:
        """Where a new replica goes as far as the controller can tell: a broker picks among many."""
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
    """The last block of producer ids that was handed out: ids below `next_id` are taken."""

    broker_id: int = -1
    broker_epoch: int = -1
    next_id: int = 0
