"""What the active controller shows of the whole cluster; on every other node these are zero.

So the sum over all nodes is right, whoever is active. Elections are those that this node has seen
decided while it was.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ottla.metadata.cluster import NO_LEADER, Partition
from ottla.metadata.delta import ImageDelta

if TYPE_CHECKING:
    from ottla.broker.server import Broker


class ClusterGauges:
    def __init__(self, broker: "Broker") -> None:
        self.elections = 0
        self._broker = broker

    def image_changed(self, delta: ImageDelta) -> None:
        if not self._broker.quorum.is_leader:
            return
        for before, after in delta.changed:
            for index, partition in after.partitions.items():
                known = before.partitions.get(index)
                if known is not None and partition.leader not in (known.leader, NO_LEADER):
                    self.elections += 1

    def add(self) -> None:
        """Name everything once; nothing is read before someone asks."""
        add, broker = self._broker.metrics.add_gauge, self._broker
        add(
            "ottla_active_controller",
            "Whether this node decides for the cluster.",
            lambda: broker.quorum.is_leader,
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
        if not self._broker.quorum.is_leader:
            return 0
        return sum(broker.is_fenced for broker in self._broker.image.brokers.values())

    def _if_active(self, counts: Callable[[Partition], bool]) -> Callable[[], int]:
        def count() -> int:
            return sum(map(counts, self._partitions())) if self._broker.quorum.is_leader else 0

        return count

    def _partitions(self) -> Iterator[Partition]:
        for topic in self._broker.image.topics_by_id.values():
            yield from topic.partitions.values()
