"""Tells the controller in which log directory each replica of this broker lies.

A controller knows it by itself where there is one directory. Where there are several the broker
chooses; once the controller knows, a failed disk takes exactly its own partitions out of service.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ottla.metadata.cluster import Topic
from ottla.metadata.delta import ImageDelta
from ottla.model.errors import Refusal
from ottla.model.types import Uuid
from ottla.protocol.messages import assign_replicas_to_dirs as wire

if TYPE_CHECKING:
    from ottla.broker.server import Broker

RETRY_MS: Final = 1000

Placed = dict[Uuid, dict[Uuid, list[int]]]  # Partitions by directory and topic.


class ReplicaDirectories:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def image_changed(self, delta: ImageDelta) -> None:
        """After the partitions are hosted: say where, if the image says something else."""
        if self._broker.lifecycle.is_registered:
            self._tell((*delta.created, *(after for _, after in delta.changed)))

    def tell_all(self) -> None:
        """Say of every partition where it lies, if that is not known yet."""
        self._tell(self._broker.image.topics_by_name.values())

    def _tell(self, topics: Iterable[Topic]) -> None:
        placed: Placed = {}
        for topic in topics:
            self._compare(topic, placed)
        if placed:
            self._broker.quorum.ask(self._request(placed), self._answered)

    def _answered(self, reply: wire.Response | Refusal) -> None:
        if isinstance(reply, Refusal):  # The controller's disk is full.
            self._broker.call_later(RETRY_MS, self.tell_all)

    def _compare(self, topic: Topic, placed: Placed) -> None:
        broker = self._broker
        for index, state in topic.partitions.items():
            if state.leader != broker.node_id:
                continue
            try:
                partition = broker.partitions.led(topic.name, topic.id, index)
            except Refusal:
                continue  # It is offline: nobody can say where it would be.
            meta = broker.directories.of(partition.log).meta
            assert meta is not None, "a directory in use is formatted"
            assert meta.directory_id is not None, "and has an id"
            if state.directory_of(broker.node_id) != meta.directory_id:
                placed.setdefault(meta.directory_id, {}).setdefault(topic.id, []).append(index)

    def _request(self, placed: Placed) -> wire.Request:
        return wire.Request(
            broker_id=self._broker.node_id,
            broker_epoch=self._broker.lifecycle.broker_epoch,
            directories=[
                wire.RequestDirectoryData(
                    directory,
                    [
                        wire.RequestTopicData(topic, [wire.RequestPartitionData(i) for i in parts])
                        for topic, parts in topics.items()
                    ],
                )
                for directory, topics in placed.items()
            ],
        )
