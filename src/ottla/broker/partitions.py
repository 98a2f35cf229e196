"""The partitions this broker hosts, made and unmade as the metadata image says.

Finds the leader's side of a partition for the handlers, with Kafka's refusals; flushes at the end
of each turn what was staged in it; takes a log directory's partitions offline when it fails.
"""

import logging
from typing import TYPE_CHECKING

from ottla.broker.log_sync import LogSync
from ottla.broker.partition import Partition
from ottla.broker.topic_config import TopicConfig
from ottla.metadata.cluster import TOPIC_RESOURCE, Topic
from ottla.metadata.delta import ImageDelta
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import Offset, TopicPartition, Uuid

if TYPE_CHECKING:
    from ottla.broker.log_directories import LogDirectories
    from ottla.broker.server import Broker

logger = logging.getLogger(__name__)


class Partitions:
    def __init__(self, broker: "Broker", directories: "LogDirectories") -> None:
        self.staged: list[Partition] = []  # Those with something to flush at the end of the turn.
        self.directories = directories
        self.sync = LogSync(broker.env.workers, broker.spawn, directories.write_failed)
        self._broker = broker
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[Uuid, int], Partition] = {}

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
        if partition is None:
            raise self._refusal(topic, topic_id, index)
        return partition

    def check_writable(self, partition: Partition) -> None:
        """Refuse a write before the disk's last reserve is gone."""
        self.directories.of(partition.log).refuse_if_unwritable()

    def flush(self) -> None:
        """Write all that this turn staged; part of the network's end of turn."""
        if not self.staged:
            return
        now = self._broker.env.clock.wall()
        staged, self.staged = self.staged, []
        for partition in staged:
            partition.flush(now)

    def write_failed(self, partition: Partition, error: OSError) -> None:
        self.directories.write_failed(partition.log, error)

    def apply(self, delta: ImageDelta) -> None:
        """Host what the image now says that this broker hosts."""
        for topic in delta.deleted:
            for index in topic.partitions:
                self._remove(topic, index)
        for topic in delta.created:
            self._update(topic)
        for _, topic in delta.changed:
            self._update(topic)
        for resource_type, name in delta.configs:
            if resource_type == TOPIC_RESOURCE:
                self._reconfigure(name)
        self._broker.prepared_produces.forget()

    def reconfigure_all(self) -> None:
        """The broker's own defaults changed."""
        for topic in {partition.name.topic for partition in self.all()}:
            self._reconfigure(topic)

    def take_offline(self, partition: Partition) -> None:
        """Its log cannot be used any more: whoever waits is told, nobody finds it."""
        self._forget(partition)
        partition.fail_waiting(ErrorCode.KAFKA_STORAGE_ERROR)

    def topic_config(self, topic: str) -> TopicConfig:
        overrides = self._broker.image.config_of(TOPIC_RESOURCE, topic)
        return TopicConfig.resolve(self._broker.settings, overrides)

    def _update(self, topic: Topic) -> None:
        me = self._broker.node_id
        config = self.topic_config(topic.name)
        for index, state in topic.partitions.items():
            known = self._by_name.get((topic.name, index))
            if state.leader != me:
                if known is not None:
                    self._forget(known)
                    known.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif known is not None:
                known.lead(state.leader_epoch)
            else:
                self._host(topic, index, state.leader_epoch, config)

    def _host(self, topic: Topic, index: int, leader_epoch: int, config: TopicConfig) -> None:
        name = TopicPartition(topic.name, index)
        settings, now = self._broker.settings, self._broker.env.clock.wall()
        try:
            log = self.directories.log(name, topic.id, config.log_config(settings), now)
        except (OSError, Damaged, Refusal) as error:
            logger.error("%s is offline: %s", name, error)
            return
        policy = config.admission_policy(settings)
        is_synced = config.flush_messages == 1
        partition = Partition(name, topic.id, log, policy, is_synced, self)
        partition.lead(leader_epoch)
        self._by_name[topic.name, index] = partition
        self._by_id[topic.id, index] = partition

    def _remove(self, topic: Topic, index: int) -> None:
        partition = self._by_name.get((topic.name, index))
        if partition is not None and partition.topic_id == topic.id:
            self._forget(partition)
            partition.fail_waiting(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
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

    def _refusal(self, topic: str, topic_id: Uuid, index: int) -> Refusal:
        image = self._broker.image
        known = image.topics_by_name.get(topic) if topic else image.topics_by_id.get(topic_id)
        if known is None and not topic:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_ID)
        if known is None or index not in known.partitions:
            return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if known.partitions[index].leader == self._broker.node_id:
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR)  # We should have it, and do not.
        return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
