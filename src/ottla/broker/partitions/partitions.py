"""The partitions this broker hosts, made and unmade as the metadata image says.

Finds the leader's side of a partition for the handlers, with Kafka's refusals; flushes at the end
of each turn what was staged in it; takes a log directory's partitions offline when it fails.
"""

import errno
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Protocol

from ottla.broker.context import BrokerContext
from ottla.broker.partitions.checkpoint_writer import CheckpointWriter
from ottla.broker.partitions.hosting import Hosting, LogFiles
from ottla.broker.partitions.log_directories import LogDirectories, NoRoom, marks_of
from ottla.broker.partitions.log_sync import LogSync
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.broker.settings.topic_config import TopicConfig
from ottla.metadata.image.cluster import NO_LEADER, RECOVERING, TOPIC_RESOURCE, Topic
from ottla.metadata.image.cluster import Partition as PartitionState
from ottla.metadata.image.delta import ImageDelta
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, NodeId, Offset, TopicPartition, Uuid
from ottla.replication.leader import ProposeIsr
from ottla.storage.directory import LogDirectory
from ottla.storage.log import Log

logger = logging.getLogger(__name__)


class Replication(Protocol):
    """The other replicas: whom this broker follows, and what it knows of them."""

    def follow(self, partition: ReplicatedPartition, leader: NodeId, leader_epoch: int) -> None: ...
    def unfollow(self, partition: ReplicatedPartition) -> None: ...
    def throttle(self, partition: ReplicatedPartition, config: TopicConfig) -> None: ...
    def is_eligible(self, topic_id: Uuid, index: int, node: NodeId, broker_epoch: int) -> bool: ...
    def is_alive(self, node: NodeId) -> bool: ...
    def nearest(self, rack: str, nodes: set[NodeId]) -> NodeId | None: ...
    def propose(self, partition: ReplicatedPartition, proposal: ProposeIsr) -> None: ...
    def answer_ready(self) -> None:
        """Answer the followers whose partitions grew in this loop turn."""


class Partitions:
    def __init__(
        self,
        context: BrokerContext,
        directories: LogDirectories,
        hosted: Callable[[list[Topic]], None],
    ) -> None:
        """`hosted` gets topics whose partitions were too many to be hosted at once."""
        self.replication: Replication  # Whom to follow, and what others have.
        self.on_changed: Callable[[], None] = _nothing  # A partition came, went or changed.
        self.on_damaged: Callable[[Uuid, int], None] = _nothing
        self.on_room: Callable[[], None] = _nothing  # Partitions got the room that they lacked.
        self.staged: list[Partition] = []  # Those with something to flush at the end of the turn.
        self.unclean_elections = 0  # Of this broker, to lead what it may not have all of.
        self.damages = 0  # Logs that were found damaged since the start.
        self.directories = directories
        self.sync = LogSync(context.env.workers, context.spawn, directories.sync_failed)
        self.checkpoints = CheckpointWriter(
            context.env.workers, context.spawn, self._marks, directories.refusal
        )
        files = LogFiles(self._make_files, directories.remove_unused)
        self.hosting = Hosting(context, files, self._host_waiting, hosted)
        self._context = context
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[Uuid, int], Partition] = {}
        self._offline: set[TopicPartition] = set()  # Ours, but their logs cannot be had.
        self._homeless: set[TopicPartition] = set()  # New ones, which a full disk had no room for.
        self._moved: set[LogDirectory] = set()  # Where logs begin later than is written down.

    def __len__(self) -> int:
        return len(self._by_name)

    def all(self) -> list[Partition]:
        return list(self._by_name.values())

    def _marks(self, directory: LogDirectory) -> dict[TopicPartition, Offset]:
        return marks_of(directory, self.high_watermarks())

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        return {partition.name: partition.high_watermark for partition in self.all()}

    def led(self, topic: str, topic_id: Uuid, index: int) -> Partition:
        """The partition, by the topic's name or, if that is empty, its id; or why not."""
        if topic:
            partition = self._by_name.get((topic, index))
        else:
            partition = self._by_id.get((topic_id, index))
        if partition is None or not partition.is_leader:
            raise self._refusal(topic, topic_id, index)
        return partition

    def readable(self, topic: str, topic_id: Uuid, index: int) -> Partition:
        """The same for a consumer, which a follower serves as well as the leader."""
        partition = self.hosted(topic, topic_id, index)
        if not partition.is_readable:
            raise self._refusal(topic, topic_id, index)
        return partition

    def hosted(self, topic: str, topic_id: Uuid, index: int) -> Partition:
        """The same, whatever its role here is."""
        if topic:
            partition = self._by_name.get((topic, index))
        else:
            partition = self._by_id.get((topic_id, index))
        if partition is None:
            raise self._refusal(topic, topic_id, index)
        return partition

    def check_writable(self, partition: Partition) -> None:
        """Refuse a write before the disk's last reserve is gone."""
        self.directories.of(partition.log).refuse_if_unwritable()

    def flush(self) -> None:
        """Write all that this turn staged; part of the network's end of turn."""
        while self.staged:  # An answer may let a peer go on that had been held up, and it stages.
            now = self._context.env.clock.wall()
            staged, self.staged = self.staged, []
            for partition in staged:
                partition.flush(now)
        self.replication.answer_ready()

    def has_staged(self, partition: Partition) -> None:
        """Flush it at the end of the turn: of the network's, or of one that ends soon."""
        self.staged.append(partition)
        if len(self.staged) == 1:
            self._context.env.network.end_turn_soon()

    def write_failed(self, partition: Partition, error: OSError | Damaged) -> None:
        """A disk that fails is lost with all it holds; what is damaged costs its partition."""
        if isinstance(error, Damaged):
            self.damaged(partition, error)
        elif error.errno == errno.ENOENT and self.directories.of(partition.log).is_present:
            path = error.filename or partition.log.directory
            self.damaged(partition, Damaged(str(path), 0, "it was removed while in use"))
        else:
            self.directories.write_failed(partition.log, error)

    def start_moved(self, log: Log) -> None:
        """A log that we follow begins later, as its leader's does."""
        if log.log_start_offset > log.oldest_offset:
            self._moved.add(self.directories.of(log))

    async def write_starts(self) -> None:
        """Write down where logs begin: what was deleted must not come back, whoever leads next."""
        moved, self._moved = self._moved, set()
        for directory in moved:
            try:
                await self.checkpoints.write(directory)
            except Refusal:  # There is no room: with the next one.
                self._moved.add(directory)

    async def checkpoint(self) -> None:
        """Write down how far every log is synced, where it starts and how far it is committed."""
        for directory in self.directories.online():
            with suppress(Refusal):  # Its failure was dealt with; the others are written.
                await self.checkpoints.write(directory)

    async def _make_files(self, names: Mapping[TopicPartition, Uuid]) -> None:
        await self._write_stale(names)
        await self.sync.wait_done_with(names)
        await self.directories.make_files(names)

    async def _write_stale(self, names: Collection[TopicPartition]) -> None:
        """Before new logs of these names begin: no checkpoint names deleted ones any more."""
        for directory in self.directories.online():
            if any(map(directory.checkpoints.is_stale, names)):
                with suppress(Refusal):  # They are hosted when there is room.
                    await self.checkpoints.write(directory)

    def load(self) -> None:
        """Host what the image says at the start."""
        self.damages = sum(len(directory.damaged) for directory in self.directories.online())
        self.directories.sync_loaded(lambda topic: self.topic_config(topic).flush_messages == 1)
        self.hosting.begin()
        for topic in self._context.image.topics_by_name.values():
            self._update(topic, topic.partitions)

    def read_failed(self, partition: Partition, error: OSError | Damaged) -> None:
        """As for a write."""
        self.write_failed(partition, error)

    def damaged(self, partition: Partition, damage: Damaged) -> None:
        """Nobody is served from its log any more. If others are in sync, it is fetched anew."""
        directory = self.directories.of(partition.log)
        if directory.logs.get(partition.name) is not partition.log:
            return  # It is offline, or deleted, already.
        logger.error("%s is offline: %s", partition.name, damage)
        self.damages += 1
        self.take_offline(partition)
        directory.set_damaged(partition.name, damage)
        self.on_damaged(partition.topic_id, partition.name.partition)

    def image_changed(self, delta: ImageDelta) -> None:
        """Host what the image now says that this broker hosts, or begin to."""
        self.hosting.begin(sum(len(topic.partitions) for topic in delta.created))
        for topic in delta.deleted:
            for index in topic.partitions:
                self._remove(topic, index)
        # Before the ISRs: under a minimum that was raised with it, a smaller ISR commits nothing.
        for resource_type, name in delta.configs:
            if resource_type == TOPIC_RESOURCE:
                self._reconfigure(name)
        for topic in delta.created:
            self._update(topic, ())
        for before, topic in delta.changed:
            self._update(topic, before.partitions)
        if self._context.node_id in delta.brokers:
            self.host_elsewhere()
        self.on_changed()

    def reconfigure_all(self) -> None:
        """The broker's own defaults changed."""
        for topic in {partition.name.topic for partition in self.all()}:
            self._reconfigure(topic)

    def take_offline(self, partition: Partition) -> None:
        """Its log cannot be used any more: whoever waits is told, nobody finds it."""
        self._stand_by(partition)
        self._forget(partition)
        self._offline.add(partition.name)
        partition.fail_waiting(ErrorCode.KAFKA_STORAGE_ERROR)

    def topic_config(self, topic: str) -> TopicConfig:
        overrides = self._context.image.config_of(TOPIC_RESOURCE, topic)
        return TopicConfig.resolve(self._context.settings, overrides)

    def host_homeless(self) -> None:
        """Make the logs that could not be made before, if there is room now."""
        if not self._homeless or all(d.is_full for d in self.directories.online()):
            return
        self.hosting.begin()
        homeless, self._homeless = self._homeless, set()
        for name in {partition.topic for partition in homeless}:
            topic = self._context.image.topics_by_name.get(name)
            if topic is not None:
                self._update(topic, [i for i in topic.partitions if (name, i) not in homeless])
        self.on_room()

    def host_elsewhere(self) -> None:
        """What lay in a log directory that failed is fetched anew into another, where it can be."""
        self.hosting.begin()
        for name in {partition.topic for partition in self._offline}:
            topic = self._context.image.topics_by_name.get(name)
            if topic is not None:
                self._update(topic, topic.partitions)

    def _update(self, topic: Topic, before: Collection[int]) -> None:
        """Host what of it is ours; a partition that was not there `before` cannot have a log."""
        config = self.topic_config(topic.name)
        for index in topic.partitions:
            self._update_one(topic, index, config, index not in before)

    def _update_one(
        self, topic: Topic, index: int, config: TopicConfig, is_new: bool, *, may_wait: bool = True
    ) -> None:
        me, state = self._context.node_id, topic.partitions[index]
        known = self._by_name.get((topic.name, index))
        is_alone = len(state.replicas) == 1
        is_ours = me in state.replicas and (state.leader == me or not is_alone)
        is_of_kind = isinstance(known, ReplicatedPartition) is not is_alone
        if known is not None and not (is_ours and is_of_kind):
            self._let_go(known)
            known = None
        if me not in state.replicas:
            self.hosting.forget(topic.id, index)
            self._delete_moved(topic, index)
        elif is_ours and not (known is None and may_wait and self._waits(topic, index, is_new)):
            known = known or self._host(topic, index, state, config, is_new)
            if known is not None:
                self._take_role(known, state)

    def _waits(self, topic: Topic, index: int, is_new: bool) -> bool:
        """Whether its log is to be made, and there are too many such to do it now."""
        if self.hosting.is_waiting(topic.id, index):
            return True
        name = TopicPartition(topic.name, index)
        at_once = not (self.directories.is_stale(name) or self.sync.is_busy_with(name))
        return self.directories.is_absent(name) and self.hosting.put_off(
            topic, index, is_new, at_once=at_once
        )

    def _host_waiting(self, topic: Topic, are_new: Mapping[int, bool]) -> None:
        config = self.topic_config(topic.name)
        for index, is_new in are_new.items():
            self._update_one(topic, index, config, is_new, may_wait=False)
        self.on_changed()

    def _may_begin_anew(self, state: PartitionState) -> bool:
        """Whether nobody counts on what we had of it, and somebody has all of it."""
        me = self._context.node_id
        return (
            self._context.is_registered
            and state.leader not in (NO_LEADER, me)
            and me not in (*state.isr, *state.elr)
        )

    def delete_moved(self) -> None:
        """What the cluster has moved away from here while we were not there to hear of it."""
        for topic in self._context.image.topics_by_name.values():
            for index, state in topic.partitions.items():
                if self._context.node_id not in state.replicas:
                    self._delete_moved(topic, index)

    def _delete_moved(self, topic: Topic, index: int) -> None:
        """Not before we know the present: the past may say that what we hold is not ours."""
        if self._context.is_registered:
            self._delete(TopicPartition(topic.name, index), topic.id)

    def _delete(self, name: TopicPartition, topic_id: Uuid) -> None:
        for directory in self.directories.delete(name, topic_id):
            self.checkpoints.soon(directory)

    def _lead_uncleanly(self, partition: Partition, state: PartitionState) -> None:
        if state.leader_epoch > partition.leader_epoch:
            self.unclean_elections += 1
            logger.warning(
                "%s is led here from offset %d on, though no replica that is sure to have all of "
                "it is left: records that were acknowledged may be lost",
                partition.name,
                partition.log.end_offset,
            )

    def _take_role(self, partition: Partition, state: PartitionState) -> None:
        replicas = self.replication
        if state.leader == self._context.node_id and state.leader_epoch > partition.leader_epoch:
            partition.flush(self._context.env.clock.wall())  # What was staged is of this epoch.
        if not isinstance(partition, ReplicatedPartition):
            partition.lead(state.leader_epoch)
        elif state.leader == self._context.node_id:
            replicas.unfollow(partition)
            if state.leader_recovery_state == RECOVERING:
                self._lead_uncleanly(partition, state)
            partition.lead_replicas(state)
        elif state.leader == NO_LEADER:
            self._stand_by(partition)
        else:
            replicas.follow(partition, state.leader, state.leader_epoch)

    def _let_go(self, partition: Partition) -> None:
        """It is not ours any more, or will be another kind of partition."""
        self._stand_by(partition)
        self._forget(partition)
        partition.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        # What was staged is refused, so the log takes its offsets back.
        partition.log.truncate_to(partition.log.end_offset)

    def _stand_by(self, partition: Partition) -> None:
        if isinstance(partition, ReplicatedPartition):
            self.replication.unfollow(partition)
            partition.stand_by()

    def _host(
        self, topic: Topic, index: int, state: PartitionState, config: TopicConfig, is_new: bool
    ) -> Partition | None:
        name = TopicPartition(topic.name, index)
        settings, now = self._context.settings, self._context.env.clock.wall()
        log_config = config.log_config(settings)
        may_replace = self._may_begin_anew(state)
        where = state.directory_of(self._context.node_id)
        try:
            log = self.directories.log(
                name,
                topic.id,
                log_config,
                now,
                is_new=is_new or may_replace,
                may_replace=may_replace,
                where=where,
            )
        except (OSError, Damaged, Refusal) as error:
            logger.error("%s is offline: %s", name, error)
            self._offline.add(name)
            if isinstance(error, NoRoom):
                self._homeless.add(name)
            elif isinstance(error, Damaged):
                self.on_damaged(topic.id, index)
            return None
        self._offline.discard(name)
        self.sync.name_soon(log)
        partition = self._partition(name, topic.id, log, config, len(state.replicas) == 1)
        self._by_name[topic.name, index] = partition
        self._by_id[topic.id, index] = partition
        return partition

    def _partition(
        self, name: TopicPartition, topic_id: Uuid, log: Log, config: TopicConfig, is_alone: bool
    ) -> Partition:
        policy = config.admission_policy(self._context.settings)
        is_synced = config.flush_messages == 1
        if is_alone:
            return Partition(name, topic_id, log, policy, is_synced, self)
        partition = ReplicatedPartition(
            name,
            topic_id,
            log,
            policy,
            is_synced,
            self,
            node=self._context.node_id,
            high_watermark=log.high_watermark,
            isr_min=config.min_insync_replicas,
            settings=self._context.settings,
            now=self._context.env.clock.monotonic,
            is_eligible=partial(self.replication.is_eligible, topic_id, name.partition),
            is_alive=self.replication.is_alive,
            propose=self.replication.propose,
            nearest=self.replication.nearest,
        )
        self.replication.throttle(partition, config)
        return partition

    def _remove(self, topic: Topic, index: int) -> None:
        self.hosting.forget(topic.id, index)
        partition = self._by_name.get((topic.name, index))
        if partition is not None and partition.topic_id == topic.id:
            self._stand_by(partition)
            self._forget(partition)
            partition.fail_waiting(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._offline.discard(TopicPartition(topic.name, index))
        self._delete(TopicPartition(topic.name, index), topic.id)

    def _forget(self, partition: Partition) -> None:
        partition.log.high_watermark = partition.high_watermark
        self._by_name.pop(partition.name, None)
        self._by_id.pop((partition.topic_id, partition.name.partition), None)
        self.on_changed()

    def _reconfigure(self, topic: str) -> None:
        known = self._context.image.topics_by_name.get(topic)
        if known is None:
            return
        settings, config = self._context.settings, self.topic_config(topic)
        for index in known.partitions:
            partition = self._by_name.get((topic, index))
            if partition is not None:
                partition.log.config = config.log_config(settings)
                partition.policy = config.admission_policy(settings)
                partition.is_synced_before_reply = config.flush_messages == 1
                if isinstance(partition, ReplicatedPartition):
                    partition.set_isr_min(config.min_insync_replicas)
                    self.replication.throttle(partition, config)

    def _refusal(self, topic: str, topic_id: Uuid, index: int) -> Refusal:
        image = self._context.image
        known = image.topics_by_name.get(topic) if topic else image.topics_by_id.get(topic_id)
        if known is None and topic_id != ZERO_UUID:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
        if known is None or index not in known.partitions:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        where = known.partitions[index].directory_of(self._context.node_id)
        if (known.name, index) in self._offline or self.directories.is_lost(where):
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR)  # We should have it, and do not.
        return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _nothing(*_: object) -> None:
    pass
