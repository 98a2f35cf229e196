"""Tells the controller in which log directory each replica of this broker lies.

A controller knows it by itself where there is one directory. Where there are several the broker
chooses; once the controller knows, a failed disk takes exactly its own partitions out of service.

A follower tells it after its leader's first answer: a replica that was begun anew because its disk
failed could else be taken, by what its leader remembers, for one that has everything.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from ottla.broker.partition import Partition
from ottla.metadata.cluster import LOST_DIRECTORY, Topic
from ottla.metadata.delta import ImageDelta
from ottla.metadata.features import has_directories
from ottla.model.errors import Refusal
from ottla.model.types import Uuid
from ottla.protocol.messages import assign_replicas_to_dirs as wire
from ottla.storage.directory import LogDirectory

if TYPE_CHECKING:
    from ottla.broker.server import Broker

RETRY_MS: Final = 1000
GATHER_MS: Final = 20  # What is to be told at about the same time is told at once.

Place = tuple[Uuid, int]  # A partition, by its topic's id.
Placed = dict[Uuid, dict[Uuid, list[int]]]  # Partitions by directory and topic.


class ReplicaDirectories:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._lost: dict[Place, Uuid] = {}  # In which directory that failed each of these lay.
        self._damaged: set[Place] = set()
        self._to_tell: set[Place] = set()
        self._timer: asyncio.TimerHandle | None = None

    def image_changed(self, delta: ImageDelta) -> None:
        """After the partitions are hosted: say where, if the image says something else."""
        if self._broker.lifecycle.is_registered:
            self._tell(_all((*delta.created, *(after for _, after in delta.changed))))

    def heard_leader(self, partition: Partition) -> None:
        """The leader of a replica that we follow has answered what we asked for."""
        self._tell_soon(partition.topic_id, partition.name.partition)

    def damaged(self, topic_id: Uuid, index: int) -> None:
        """Its log cannot be used: others are to lead it, and not to count on what we had."""
        self._damaged.add((topic_id, index))
        self._tell_soon(topic_id, index)

    def _tell_soon(self, topic_id: Uuid, index: int) -> None:
        self._to_tell.add((topic_id, index))
        if self._timer is None:
            self._timer = self._broker.call_later(GATHER_MS, self._tell_gathered)

    def lost(self, partition: Partition, directory: LogDirectory) -> None:
        """Its directory failed. The controller has to know that it lay there."""
        self._lost[partition.topic_id, partition.name.partition] = _id(directory)

    def tell_all(self) -> None:
        """Say of every partition where it lies, if that is not known yet."""
        self._tell(_all(self._broker.image.topics_by_name.values()))

    def _tell_gathered(self) -> None:
        self._timer = None
        if not self._broker.lifecycle.is_registered:
            self._timer = self._broker.call_later(RETRY_MS, self._tell_gathered)
            return
        to_tell, self._to_tell = self._to_tell, set()
        by_id = self._broker.image.topics_by_id
        self._tell((by_id[topic], index) for topic, index in sorted(to_tell) if topic in by_id)

    def _tell(self, partitions: Iterable[tuple[Topic, int]]) -> None:
        if not has_directories(self._broker.image.metadata_version):
            return  # The log of an older cluster cannot say it.
        placed: Placed = {}
        for topic, index in partitions:
            self._compare(topic, index, placed)
        if placed:
            self._broker.quorum.ask(self._request(placed), self._answered)

    def _answered(self, reply: wire.Response | Refusal) -> None:
        if isinstance(reply, Refusal):  # The controller's disk is full.
            self._broker.call_later(RETRY_MS, self.tell_all)

    def _compare(self, topic: Topic, index: int, placed: Placed) -> None:
        me, state = self._broker.node_id, topic.partitions[index]
        if me in state.replicas:
            directory = self._directory(topic, index)
            if directory is not None and state.directory_of(me) != directory:
                placed.setdefault(directory, {}).setdefault(topic.id, []).append(index)

    def _directory(self, topic: Topic, index: int) -> Uuid | None:
        """Where it lies, or lay; None if nobody can say yet."""
        broker = self._broker
        try:
            partition = broker.partitions.hosted(topic.name, topic.id, index)
        except Refusal:
            if (topic.id, index) in self._damaged and topic.partitions[index].has_others_in_sync(
                broker.node_id
            ):
                return LOST_DIRECTORY  # Where nobody else has what we have, we stay its leader.
            return self._lost.get((topic.id, index))
        if not partition.is_known_to_leader:
            return None
        self._lost.pop((topic.id, index), None)
        self._damaged.discard((topic.id, index))
        return _id(broker.directories.of(partition.log))

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


def _all(topics: Iterable[Topic]) -> Iterator[tuple[Topic, int]]:
    return ((topic, index) for topic in topics for index in topic.partitions)


def _id(directory: LogDirectory) -> Uuid:
    assert directory.meta is not None, "a directory in use is formatted"
    assert directory.meta.directory_id is not None, "and has an id"
    return directory.meta.directory_id
