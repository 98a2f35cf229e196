"""What the active controller shows of the whole cluster; on every other node these are zero.

So the sum over all nodes is right, whoever is active. Elections are those that this node has seen
decided while it was.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

from ottla.broker.metrics.metrics import Metrics
from ottla.metadata.image.cluster import NO_LEADER, Partition
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.image import ClusterImage


class ControllerView(Protocol):
    @property
    def image(self) -> ClusterImage: ...
    @property
    def is_active_controller(self) -> bool: ...


class ClusterGauges:
    def __init__(self, cluster: ControllerView, metrics: Metrics) -> None:
        self.elections = 0
        self._cluster = cluster
        self._metrics = metrics

    def image_changed(self, delta: ImageDelta) -> None:
        if not self._cluster.is_active_controller:
            return
        for before, after in delta.changed:
            for index, partition in after.partitions.items():
                known = before.partitions.get(index)
                if known is not None and partition.leader not in (known.leader, NO_LEADER):
                    self.elections += 1

    def add(self) -> None:
        """Name everything once; nothing is read before someone asks."""
        add = self._metrics.add_gauge
        add(
            "ottla_active_controller",
            "Whether this node decides for the cluster.",
            lambda: self._cluster.is_active_controller,
        )
        add(
            "ottla_offline_partitions",
            "Partitions that nobody leads.",
            self._if_active(lambda p: p.leader == NO_LEADER),
        )
        add(
            "ottla_reassigning_partitions",
            "Partitions on their way to other brokers.",
            self._if_active(lambda p: bool(p.adding or p.removing)),
        )
        add("ottla_leader_elections", "Leaders chosen anew.", lambda: self.elections)
        add("ottla_fenced_brokers", "Brokers that are registered, and away.", self._fenced)

    def _fenced(self) -> int:
        if not self._cluster.is_active_controller:
            return 0
        return sum(broker.is_fenced for broker in self._cluster.image.brokers.values())

    def _if_active(self, counts: Callable[[Partition], bool]) -> Callable[[], int]:
        def count() -> int:
            return sum(map(counts, self._partitions())) if self._cluster.is_active_controller else 0

        return count

    def _partitions(self) -> Iterator[Partition]:
        for topic in self._cluster.image.topics_by_id.values():
            yield from topic.partitions.values()
