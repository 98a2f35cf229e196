"""Tells the controller in which log directory each replica of this broker lies.

A controller knows it by itself where there is one directory. Where there are several the broker
chooses; once the controller knows, a failed disk takes exactly its own partitions out of service.

A follower tells it after its leader's first answer: a replica that was begun anew because its disk
failed could else be taken, by what its leader remembers, for one that has everything.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from ottla.broker.context import BrokerContext
from ottla.broker.partitions.log_directories import LogDirectories
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.metadata.image.cluster import LOST_DIRECTORY, Topic
from ottla.metadata.image.cluster import Partition as PartitionState
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.features import has_directories
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Uuid
from ottla.protocol.messages import assign_replicas_to_dirs as wire
from ottla.storage.directory import LogDirectory

logger = logging.getLogger(__name__)

RETRY_MS: Final = 1000
AGAIN_SECONDS: Final = 0.2
GATHER_MS: Final = 20  # What is to be told at about the same time is told at once.

# Others that have it were not heard yet, or there is no controller, or its disk is full.
NOT_YET: Final = frozenset(
    {
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)

Place = tuple[Uuid, int]  # A partition, by its topic's id.
Placed = dict[Uuid, dict[Uuid, list[int]]]  # Partitions by directory and topic.


class ReplicaDirectories:
    def __init__(
        self,
        context: BrokerContext,
        partitions: Partitions,
        directories: LogDirectories,
    ) -> None:
        self._context = context
        self._partitions = partitions
        self._directories = directories
        self._lost: dict[Place, Uuid] = {}  # In which directory that failed each of these lay.
        self._damaged: set[Place] = set()
        self._to_tell: set[Place] = set()
        self._timer: asyncio.TimerHandle | None = None

    def image_changed(self, delta: ImageDelta) -> None:
        """After the partitions are hosted: say where, if the image says something else."""
        if not self._context.is_registered:
            return
        changed = (*delta.created, *(after for _, after in delta.changed))
        places = {(topic.id, index): None for topic, index in _all(changed)}
        if delta.brokers:  # Of what is lost here, one that came may have all.
            places |= dict.fromkeys(sorted(self._damaged | self._lost.keys()))
        self._tell_places(places)

    def heard_leader(self, partition: Partition) -> None:
        """The leader of a replica that we follow has answered what we asked for."""
        self._tell_soon(partition.topic_id, partition.name.partition)

    def damaged(self, topic_id: Uuid, index: int) -> None:
        """Its log cannot be used: others are to lead it, and not to count on what we had."""
        self._damaged.add((topic_id, index))
        self._tell_soon(topic_id, index)

    def _tell_soon(self, topic_id: Uuid, index: int, delay_ms: Millis = GATHER_MS) -> None:
        self._to_tell.add((topic_id, index))
        if self._timer is None:
            self._timer = self._context.call_later(delay_ms, self._tell_gathered)

    def lost(self, partition: Partition, directory: LogDirectory) -> None:
        """Its directory failed. The controller has to know that it lay there."""
        self._lost[partition.topic_id, partition.name.partition] = _id(directory)

    def tell_all(self) -> None:
        """Say of every partition where it lies, if that is not known yet."""
        self._tell(_all(self._context.image.topics_by_name.values()))

    def _tell_gathered(self) -> None:
        self._timer = None
        if not self._context.is_registered:
            self._timer = self._context.call_later(RETRY_MS, self._tell_gathered)
            return
        to_tell, self._to_tell = self._to_tell, set()
        self._tell_places(sorted(to_tell))

    def _tell_places(self, places: Iterable[Place]) -> None:
        by_id = self._context.image.topics_by_id
        self._tell((by_id[topic], index) for topic, index in places if topic in by_id)

    def _tell(self, partitions: Iterable[tuple[Topic, int]]) -> None:
        if not has_directories(self._context.image.metadata_version):
            return  # The log of an older cluster cannot say it.
        placed: Placed = {}
        for topic, index in partitions:
            self._compare(topic, index, placed)
        if placed:
            self._context.spawn(self._submit(self._request(placed, self._context.broker_epoch)))

    async def _submit(self, request: wire.Request) -> None:
        try:
            await self._context.submit(request)
        except Refusal:  # The controller's disk is full.
            self._context.call_later(RETRY_MS, self.tell_all)

    def _compare(self, topic: Topic, index: int, placed: Placed) -> None:
        me, state = self._context.node_id, topic.partitions[index]
        if me not in state.replicas:
            return
        directory = self._directory(topic, index)
        if directory is None:
            return
        is_lost = self._directories.is_lost(directory)
        if state.directory_of(me) != directory or (is_lost and self._is_counted_on(state)):
            placed.setdefault(directory, {}).setdefault(topic.id, []).append(index)
            if is_lost:  # Until it shows: the controller may not have heard yet who has it.
                self._tell_soon(topic.id, index, RETRY_MS)

    def _is_counted_on(self, state: PartitionState) -> bool:
        """Whether we may lead it one day, for all that the cluster knows, though others can."""
        me = self._context.node_id
        is_counted = me in (*state.isr, *state.elr)
        return is_counted and self._context.image.can_be_led_without(state, me)

    def _directory(self, topic: Topic, index: int) -> Uuid | None:
        """Where it lies, or lay; None if nobody can say yet."""
        try:
            partition = self._partitions.hosted(topic.name, topic.id, index)
        except Refusal:
            return self._lost_directory(topic, index)
        if not partition.is_known_to_leader:
            return None
        self._lost.pop((topic.id, index), None)
        self._damaged.discard((topic.id, index))
        return _id(self._directories.of(partition.log))

    def _lost_directory(self, topic: Topic, index: int) -> Uuid | None:
        """Where nobody else has what we have of a damaged log, we stay its leader."""
        me, state = self._context.node_id, topic.partitions[index]
        if (topic.id, index) in self._damaged:
            return LOST_DIRECTORY if self._context.image.can_be_led_without(state, me) else None
        directory = self._lost.get((topic.id, index), state.directory_of(me))
        return directory if self._directories.is_lost(directory) else None

    async def give_up(self, broker_epoch: int) -> bool:
        """Before registering: what the last process, of that epoch, had in damaged logs is lost.

        Else it would count as whole from the registration on, and others might leave it the
        partition. False if that cannot be noted: then no process must say that it is whole.
        """
        while places := self._given_up():
            if not has_directories(self._context.image.metadata_version):
                return False
            try:
                await self._context.submit(self._request({LOST_DIRECTORY: places}, broker_epoch))
            except Refusal as refusal:
                if refusal.code not in NOT_YET:
                    return False
                logger.info("the controller does not give up damaged replicas yet: %s", refusal)
                await asyncio.sleep(AGAIN_SECONDS)
            else:
                return True
        return True

    def _given_up(self) -> dict[Uuid, list[int]]:
        """Damaged replicas that count as whole, of which others have all, alive or not."""
        me = self._context.node_id
        places: dict[Uuid, list[int]] = {}
        for topic_id, index in sorted(self._damaged):
            topic = self._context.image.topics_by_id.get(topic_id)
            state = topic.partitions.get(index) if topic else None
            if state is None or state.directory_of(me) == LOST_DIRECTORY:
                continue
            whole = {*state.isr, *state.elr}
            if me in whole and len(whole) > 1:
                places.setdefault(topic_id, []).append(index)
        return places

    def _request(self, placed: Placed, broker_epoch: int) -> wire.Request:
        return wire.Request(
            broker_id=self._context.node_id,
            broker_epoch=broker_epoch,
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
