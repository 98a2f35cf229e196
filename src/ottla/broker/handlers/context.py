"""What the handlers of each kind of API use of a broker."""

from typing import Protocol

from ottla.broker.context import BrokerContext
from ottla.broker.controller.quorum_driver import QuorumDriver
from ottla.broker.fetch.sessions import FetchSessions
from ottla.broker.liveness.death_watch import DeathWatch
from ottla.broker.liveness.lifecycle import Lifecycle
from ottla.broker.liveness.peer_liveness import PeerLiveness
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.partitions.log_directories import LogDirectories
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.produce.producer_ids import ProducerIds
from ottla.broker.replicas.replicas import Replicas
from ottla.broker.wire.batch_scans import BatchScans
from ottla.broker.wire.connections import Connections


class PartitionContext(BrokerContext, Protocol):
    """The partitions of this broker, and the time that looking at them may take."""

    @property
    def partitions(self) -> Partitions: ...
    @property
    def directories(self) -> LogDirectories: ...
    @property
    def scans(self) -> BatchScans: ...


class CreationContext(PartitionContext, Protocol):
    """The same, and what becomes of a connection."""

    @property
    def connections(self) -> Connections: ...


class FetchContext(PartitionContext, Protocol):
    """Sessions of consumers and followers, and whether this broker may have been deposed."""

    @property
    def fetch_sessions(self) -> FetchSessions: ...
    @property
    def replicas(self) -> Replicas: ...
    @property
    def connections(self) -> Connections: ...
    @property
    def lifecycle(self) -> Lifecycle: ...
    @property
    def metrics(self) -> Metrics: ...


class MetadataContext(PartitionContext, Protocol):
    """Brokers that may be gone, and what becomes of a connection."""

    @property
    def connections(self) -> Connections: ...
    @property
    def peer_liveness(self) -> PeerLiveness: ...


class QuorumContext(BrokerContext, Protocol):
    """The quorum of controllers."""

    @property
    def quorum(self) -> QuorumDriver: ...


class HeartbeatContext(BrokerContext, Protocol):
    """Who watches the connections of heartbeats."""

    @property
    def death_watch(self) -> DeathWatch: ...


class ProducerIdContext(BrokerContext, Protocol):
    """Producer ids that no other producer has."""

    @property
    def producer_ids(self) -> ProducerIds: ...
