"""What producing needs of a broker."""

from typing import TYPE_CHECKING, Protocol

from ottla.broker.context import BrokerContext
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.partitions.log_directories import LogDirectories
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.wire.batch_scans import BatchScans
from ottla.broker.wire.faults import Faults
from ottla.broker.wire.memory import RequestMemory

if TYPE_CHECKING:
    from ottla.broker.produce.prepared_produce import PreparedProduces


class ProduceContext(BrokerContext, Protocol):
    @property
    def partitions(self) -> Partitions: ...
    @property
    def directories(self) -> LogDirectories: ...
    @property
    def scans(self) -> BatchScans: ...
    @property
    def memory(self) -> RequestMemory: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def faults(self) -> Faults: ...
    @property
    def prepared_produces(self) -> "PreparedProduces": ...
