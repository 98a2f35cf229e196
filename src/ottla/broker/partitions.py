"""The partitions this broker hosts, made and unmade as the metadata image says.

Finds the leader's side of a partition for the handlers, with Kafka's refusals; flushes at the end
of each turn what was staged in it; takes a log directory's partitions offline when it fails.
"""

import logging
from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.hosting import Hosting
from ottla.broker.log_directories import NoRoom
from ottla.broker.log_sync import LogSync
from ottla.broker.partition import Partition
from ottla.broker.replicated_partition import ReplicatedPartition
from ottla.broker.topic_config import TopicConfig
from ottla.metadata.cluster import NO_LEADER, RECOVERING, TOPIC_RESOURCE, Topic
from ottla.metadata.cluster import Partition as PartitionState
from ottla.metadata.delta import ImageDelta
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, Offset, TopicPartition, Uuid
from ottla.storage.directory import LogDirectory
from ottla.storage.log import Log

if TYPE_CHECKING:
    from ottla.broker.log_directories import LogDirectories
    from ottla.broker.server import Broker

logger = logging.getLogger(__name__)


class Partitions:
    def __init__(self, broker: "Broker", directories: "LogDirectories") -> None:
        self.staged: list[Partition] = []  # Those with something to flush at the end of the turn.
        self.unclean_elections = 0  # Of this broker, to lead what it may not have all of.
        self.damages = 0  # Logs that were found damaged since the start.
        self.directories = directories
        self.sync = LogSync(broker.env.workers, broker.spawn, directories.sync_failed)
        self.hosting = Hosting(broker, self._host_waiting, broker.partitions_hosted)
        self._broker = broker
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[Uuid, int], Partition] = {}
        self._offline: set[TopicPartition] = set()  # Ours, but their logs cannot be had.
        self._homeless: set[TopicPartition] = set()  # New ones, which a full disk had no room for.
        self._moved: dict[LogDirectory, Log] = {}  # Where logs begin later than is written down.

    def __len__(self) -> int:
        return len(self._by_name)

    def all(self) -> list[Partition]:
        return list(self._by_name.values())

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
            now = self._broker.env.clock.wall()
            staged, self.staged = self.staged, []
            for partition in staged:
                partition.flush(now)
        self._broker.replicas.sessions.answer_ready()

    def flush_soon(self) -> None:
        """The same for what was staged outside a turn of the network."""
        if self.staged:
            self._broker.env.network.end_turn_soon()

    def write_failed(self, partition: Partition, error: OSError) -> None:
        self.directories.write_failed(partition.log, error)

    def start_moved(self, log: Log) -> None:
        """A log that we follow begins later, as its leader's does."""
        if log.log_start_offset > log.segments[0].base_offset:
            self._moved[self.directories.of(log)] = log

    def write_starts(self) -> None:
        """Write down where logs begin: what was deleted must not come back, whoever leads next."""
        moved, self._moved = self._moved, {}
        for directory, log in moved.items():
            try:
                self.directories.write_down(log, self.high_watermarks())
            except Refusal:  # There is no room: with the next one.
                self._moved[directory] = log

    def load(self) -> None:
        """Host what the image says at the start."""
        self.damages = sum(len(directory.damaged) for directory in self.directories.online())
        self.hosting.begin()
        for topic in self._broker.image.topics_by_name.values():
            self._update(topic, topic.partitions)

    def read_failed(self, partition: Partition, error: OSError | Damaged) -> None:
        """A disk that fails is lost with all it holds; damage costs the partition that has it."""
        if isinstance(error, OSError):
            self.directories.write_failed(partition.log, error)
        else:
            self.damaged(partition, error)

    def damaged(self, partition: Partition, damage: Damaged) -> None:
        """Nobody is served from its log any more. If others are in sync, it is fetched anew."""
        logger.error("%s is offline: %s", partition.name, damage)
        self.damages += 1
        self.take_offline(partition)
        self.directories.of(partition.log).set_damaged(partition.name, damage)
        self._broker.replica_directories.damaged(partition.topic_id, partition.name.partition)

    def apply(self, delta: ImageDelta) -> None:
        """Host what the image now says that this broker hosts, or begin to."""
        self.hosting.begin()
        for topic in delta.deleted:
            for index in topic.partitions:
                self._remove(topic, index)
        for topic in delta.created:
            self._update(topic, ())
        for before, topic in delta.changed:
            self._update(topic, before.partitions)
        for resource_type, name in delta.configs:
            if resource_type == TOPIC_RESOURCE:
                self._reconfigure(name)
        if self._broker.node_id in delta.brokers:
            self.host_elsewhere()
        self._broker.prepared_produces.forget()

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
        overrides = self._broker.image.config_of(TOPIC_RESOURCE, topic)
        return TopicConfig.resolve(self._broker.settings, overrides)

    def host_homeless(self) -> None:
        """Make the logs that could not be made before, if there is room now."""
        if not self._homeless or all(d.is_full for d in self.directories.online()):
            return
        self.hosting.begin()
        homeless, self._homeless = self._homeless, set()
        for name in {partition.topic for partition in homeless}:
            topic = self._broker.image.topics_by_name.get(name)
            if topic is not None:
                self._update(topic, [i for i in topic.partitions if (name, i) not in homeless])
        self._broker.replica_directories.tell_all()

    def host_elsewhere(self) -> None:
        """What lay in a log directory that failed is fetched anew into another, where it can be."""
        self.hosting.begin()
        for name in {partition.topic for partition in self._offline}:
            topic = self._broker.image.topics_by_name.get(name)
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
        me, state = self._broker.node_id, topic.partitions[index]
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
        return self.directories.is_absent(name) and self.hosting.put_off(topic, index, is_new)

    def _host_waiting(self, topic: Topic, are_new: Mapping[int, bool]) -> None:
        config = self.topic_config(topic.name)
        for index, is_new in are_new.items():
            self._update_one(topic, index, config, is_new, may_wait=False)
        self._broker.prepared_produces.forget()

    def _may_begin_anew(self, state: PartitionState) -> bool:
        """Whether nobody counts on what we had of it, and somebody has all of it."""
        me = self._broker.node_id
        return (
            self._broker.lifecycle.is_registered
            and state.leader not in (NO_LEADER, me)
            and me not in (*state.isr, *state.elr)
        )

    def delete_moved(self) -> None:
        """What the cluster has moved away from here while we were not there to hear of it."""
        for topic in self._broker.image.topics_by_name.values():
            for index, state in topic.partitions.items():
                if self._broker.node_id not in state.replicas:
                    self._delete_moved(topic, index)

    def _delete_moved(self, topic: Topic, index: int) -> None:
        """Not before we know the present: the past may say that what we hold is not ours."""
        if self._broker.lifecycle.is_registered:
            self.directories.delete(TopicPartition(topic.name, index), topic.id)

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
        replicas = self._broker.replicas
        if state.leader == self._broker.node_id and state.leader_epoch > partition.leader_epoch:
            partition.flush(self._broker.env.clock.wall())  # What was staged is of this epoch.
        if not isinstance(partition, ReplicatedPartition):
            partition.lead(state.leader_epoch)
        elif state.leader == self._broker.node_id:
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
            self._broker.replicas.unfollow(partition)
            partition.stand_by()

    def _host(
        self, topic: Topic, index: int, state: PartitionState, config: TopicConfig, is_new: bool
    ) -> Partition | None:
        name = TopicPartition(topic.name, index)
        settings, now = self._broker.settings, self._broker.env.clock.wall()
        log_config = config.log_config(settings)
        may_replace = self._may_begin_anew(state)
        try:
            log = self.directories.log(
                name,
                topic.id,
                log_config,
                now,
                is_new=is_new or may_replace,
                may_replace=may_replace,
            )
            if config.flush_messages == 1 and log.recovery_point < log.end_offset:
                log.sync()  # A crash left it in the page cache; from here on others count on it.
        except (OSError, Damaged, Refusal) as error:
            logger.error("%s is offline: %s", name, error)
            self._offline.add(name)
            if isinstance(error, NoRoom):
                self._homeless.add(name)
            elif isinstance(error, Damaged):
                self._broker.replica_directories.damaged(topic.id, index)
            return None
        self._offline.discard(name)
        partition = self._partition(name, topic.id, log, config, len(state.replicas) == 1)
        self._by_name[topic.name, index] = partition
        self._by_id[topic.id, index] = partition
        return partition

    def _partition(
        self, name: TopicPartition, topic_id: Uuid, log: Log, config: TopicConfig, is_alone: bool
    ) -> Partition:
        broker = self._broker
        policy = config.admission_policy(broker.settings)
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
            node=broker.node_id,
            high_watermark=self.directories.of(log).checkpoints.high_watermarks.get(name, 0),
            isr_min=config.min_insync_replicas,
            settings=broker.settings,
            now=broker.env.clock.monotonic,
            is_eligible=partial(broker.replicas.is_eligible, topic_id, name.partition),
            is_alive=broker.replicas.is_alive,
            propose=broker.replicas.proposals.propose,
            nearest=broker.replicas.nearest,
        )
        broker.replicas.throttle(partition, config)
        return partition

    def _remove(self, topic: Topic, index: int) -> None:
        self.hosting.forget(topic.id, index)
        partition = self._by_name.get((topic.name, index))
        if partition is not None and partition.topic_id == topic.id:
            self._stand_by(partition)
            self._forget(partition)
            partition.fail_waiting(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._offline.discard(TopicPartition(topic.name, index))
        self.directories.delete(TopicPartition(topic.name, index), topic.id)

    def _forget(self, partition: Partition) -> None:
        self._by_name.pop(partition.name, None)
        self._by_id.pop((partition.topic_id, partition.name.partition), None)
        self._broker.prepared_produces.forget()

    def _reconfigure(self, topic: str) -> None:
        known = self._broker.image.topics_by_name.get(topic)
        if known is None:
            return
        settings, config = self._broker.settings, self.topic_config(topic)
        for index in known.partitions:
            partition = self._by_name.get((topic, index))
            if partition is not None:
                partition.log.config = config.log_config(settings)
                partition.policy = config.admission_policy(settings)
                partition.is_synced_before_reply = config.flush_messages == 1
                if isinstance(partition, ReplicatedPartition):
                    partition.set_isr_min(config.min_insync_replicas)
                    self._broker.replicas.throttle(partition, config)

    def _refusal(self, topic: str, topic_id: Uuid, index: int) -> Refusal:
        image = self._broker.image
        known = image.topics_by_name.get(topic) if topic else image.topics_by_id.get(topic_id)
        if known is None and topic_id != ZERO_UUID:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
        if known is None or index not in known.partitions:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        where = known.partitions[index].directory_of(self._broker.node_id)
        if (known.name, index) in self._offline or self.directories.is_lost(where):
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR)  # We should have it, and do not.
        return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
