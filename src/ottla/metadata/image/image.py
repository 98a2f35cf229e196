"""The cluster's state: the fold of all records of the metadata log.

A combined node keeps two folds: the controller's, of appended records, and the broker's, of
committed ones. A topic is copied on its first change after `take_delta`, so a published `Topic`
never changes, and a change costs only what it touches.

Every record type of Kafka 4.3 is kept, served here or not, so that a snapshot loses nothing.
Records between BeginTransaction and EndTransaction take effect only with the latter.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ottla.metadata.image.cluster import (
    LEADER_UNCHANGED,
    MIGRATING_DIRECTORY,
    RECOVERY_UNCHANGED,
    TOPIC_RESOURCE,
    Broker,
    ControllerNode,
    Endpoint,
    Partition,
    ProducerIds,
    Topic,
    VersionRange,
)
from ottla.metadata.image.delta import Changes, ImageDelta
from ottla.model.types import NodeId, Offset, Uuid
from ottla.protocol import metadata_records as records

Resource = tuple[int, str]  # Resource type and name of a config.
QuotaEntity = frozenset[tuple[str, str | None]]


class InconsistentRecord(Exception):
    """A record that contradicts the ones before it: no controller wrote this log."""


class ClusterImage:
    def __init__(self, cluster_id: str = "") -> None:
        self.cluster_id = cluster_id
        self.offset: Offset = -1  # The last record that was applied.
        self.topics_by_name: dict[str, Topic] = {}
        self.topics_by_id: dict[Uuid, Topic] = {}
        self.brokers: dict[NodeId, Broker] = {}
        self.controllers: dict[NodeId, ControllerNode] = {}
        self.configs: dict[Resource, dict[str, str]] = {}
        self.features: dict[str, int] = {}
        self.producer_ids = ProducerIds()
        self.acls: dict[Uuid, records.AccessControlEntryRecord] = {}
        self.scram: dict[tuple[int, str], records.UserScramCredentialRecord] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.delegation_tokens: dict[str, records.DelegationTokenRecord] = {}
        self.zk_migration_state: int | None = None
        self._changes = Changes()
        self._transaction: list[records.MetadataRecord] | None = None

    @property
    def metadata_version(self) -> int:
        return self.features.get("metadata.version", 0)

    @property
    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics_by_id.values())

    @property
    def is_in_transaction(self) -> bool:
        return self._transaction is not None

    def can_be_led_without(self, partition: Partition, node: NodeId) -> bool:
        """Whether another broker holds all committed records: in the ISR, or in the ELR and alive.

        A replica of the ELR is elected once the ISR is empty.
        """
        return partition.has_others_in_sync(node) or any(
            other != node and self.has_live_replica(partition, other) for other in partition.elr
        )

    def has_live_replica(self, partition: Partition, node: NodeId) -> bool:
        broker = self.brokers.get(node)
        return broker is not None and broker.is_active and broker.has_disk_of(partition)

    def config_of(self, resource_type: int, name: str) -> dict[str, str]:
        return self.configs.get((resource_type, name), {})

    def apply(self, offset: Offset, record: records.MetadataRecord) -> None:
        """Fold in one record."""
        self.offset = offset
        kind = type(record)
        if kind is records.BeginTransactionRecord:
            self._check(self._transaction is None, "a transaction begins inside another")
            self._transaction = []
        elif kind is records.AbortTransactionRecord:
            self._check(self._transaction is not None, "no transaction is there to abort")
            self._transaction = None
        elif kind is records.EndTransactionRecord:
            self._check(self._transaction is not None, "no transaction is there to end")
            pending, self._transaction = self._transaction, None
            for held in pending or ():
                _FOLDS[type(held)](self, held)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            _FOLDS[kind](self, record)

    def frozen(self) -> "ClusterImage":
        """A copy of the current image for another thread. Call only between two deltas."""
        assert self._changes == Changes(), "a topic that still changes must not be shared"
        copy = ClusterImage(self.cluster_id)
        for name, value in vars(self).items():
            setattr(copy, name, dict(value) if isinstance(value, dict) else value)
        copy._changes = Changes()
        copy._transaction = None if self._transaction is None else list(self._transaction)
        return copy

    def take_delta(self) -> ImageDelta:
        """The changes since the last call."""
        changes, self._changes = self._changes, Changes()
        return changes.finish(self.topics_by_id)

    def _topic(self, record: records.TopicRecord) -> None:
        self._check(record.name not in self.topics_by_name, f"topic {record.name!r} is there twice")
        self._changes.topics[record.topic_id] = None
        self._publish(Topic(record.name, record.topic_id, {}))

    def _remove_topic(self, record: records.RemoveTopicRecord) -> None:
        topic = self.topics_by_id.pop(record.topic_id, None)
        if topic is None:
            raise InconsistentRecord("a topic is removed that is not there")
        self._changes.topics.setdefault(topic.id, topic)
        del self.topics_by_name[topic.name]
        if self.configs.pop((TOPIC_RESOURCE, topic.name), None) is not None:
            self._changes.configs.add((TOPIC_RESOURCE, topic.name))

    def _partition(self, record: records.PartitionRecord) -> None:
        replicas = _nodes(record.replicas)
        self._writable(record.topic_id).partitions[record.partition_id] = Partition(
            leader=NodeId(record.leader),
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            replicas=replicas,
            isr=_nodes(record.isr),
            adding=_nodes(record.adding_replicas),
            removing=_nodes(record.removing_replicas),
            elr=_nodes(record.eligible_leader_replicas or ()),
            last_known_elr=_nodes(record.last_known_elr or ()),
            directories=tuple(record.directories) or (MIGRATING_DIRECTORY,) * len(replicas),
            leader_recovery_state=record.leader_recovery_state,
        )

    def _partition_change(self, record: records.PartitionChangeRecord) -> None:
        partitions = self._writable(record.topic_id).partitions
        partition = partitions.get(record.partition_id)
        if partition is None:
            raise InconsistentRecord(f"partition {record.partition_id} changes but is not there")
        partitions[record.partition_id] = merged(partition, record)

    def _clear_elr(self, record: records.ClearElrRecord) -> None:
        named = self.topics_by_name.get(record.topic_name) if record.topic_name else None
        self._check(not record.topic_name or named is not None, "an unknown topic's ELR is cleared")
        cleared = records.PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[])
        for topic in [named] if named else list(self.topics_by_id.values()):
            for index, partition in topic.partitions.items():
                if partition.elr or partition.last_known_elr:
                    self._writable(topic.id).partitions[index] = merged(partition, cleared)

    def _config(self, record: records.ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        self._changes.configs.add(resource)
        config = dict(self.configs.get(resource, {}))
        if record.value is None:
            config.pop(record.name, None)
        else:
            config[record.name] = record.value
        if config:
            self.configs[resource] = config
        else:
            self.configs.pop(resource, None)

    def _register_broker(self, record: records.RegisterBrokerRecord) -> None:
        cordoned = record.cordoned_log_dirs
        self._put_broker(
            Broker(
                id=NodeId(record.broker_id),
                epoch=record.broker_epoch,
                incarnation_id=record.incarnation_id,
                endpoints=_endpoints(record.end_points),
                features=_features(record.features),
                rack=record.rack,
                is_fenced=record.fenced,
                in_controlled_shutdown=record.in_controlled_shutdown,
                directories=tuple(record.log_dirs),
                cordoned_directories=None if cordoned is None else tuple(cordoned),
                is_migrating_zk=record.is_migrating_zk_broker,
                registered_at=self.offset,
            )
        )

    def _unregister_broker(self, record: records.UnregisterBrokerRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        self._changes.brokers.add(broker.id)
        del self.brokers[broker.id]

    def _fence_broker(self, record: records.FenceBrokerRecord) -> None:
        self._put_broker(replace(self._broker(record.id, record.epoch), is_fenced=True))

    def _unfence_broker(self, record: records.UnfenceBrokerRecord) -> None:
        self._put_broker(replace(self._broker(record.id, record.epoch), is_fenced=False))

    def _broker_change(self, record: records.BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced:  # 1 fences, -1 unfences, 0 leaves as it is.
            broker = replace(broker, is_fenced=record.fenced > 0)
        if record.in_controlled_shutdown:
            broker = replace(broker, in_controlled_shutdown=True)
        if record.log_dirs:
            broker = replace(broker, directories=tuple(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            broker = replace(broker, cordoned_directories=tuple(record.cordoned_log_dirs))
        self._put_broker(broker)

    def _register_controller(self, record: records.RegisterControllerRecord) -> None:
        node = NodeId(record.controller_id)
        self._changes.controllers.add(node)
        self.controllers[node] = ControllerNode(
            node,
            record.incarnation_id,
            _endpoints(record.end_points),
            _features(record.features),
            record.zk_migration_ready,
        )

    def _feature_level(self, record: records.FeatureLevelRecord) -> None:
        self._changes.features.add(record.name)
        if record.feature_level:
            self.features[record.name] = record.feature_level
        else:
            self.features.pop(record.name, None)

    def _producer_ids(self, record: records.ProducerIdsRecord) -> None:
        self.producer_ids = ProducerIds(
            record.broker_id, record.broker_epoch, record.next_producer_id
        )

    def _acl(self, record: records.AccessControlEntryRecord) -> None:
        self._changes.acls = True
        self.acls[record.id] = record

    def _remove_acl(self, record: records.RemoveAccessControlEntryRecord) -> None:
        self._check(record.id in self.acls, "an access control entry is removed that is not there")
        self._changes.acls = True
        del self.acls[record.id]

    def _scram(self, record: records.UserScramCredentialRecord) -> None:
        self._changes.credentials = True
        self.scram[(record.mechanism, record.name)] = record

    def _remove_scram(self, record: records.RemoveUserScramCredentialRecord) -> None:
        self._changes.credentials = True
        removed = self.scram.pop((record.mechanism, record.name), None)
        self._check(removed is not None, "a SCRAM credential is removed that is not there")

    def _quota(self, record: records.ClientQuotaRecord) -> None:
        self._changes.quotas = True
        entity = frozenset((part.entity_type, part.entity_name) for part in record.entity)
        limits = dict(self.quotas.get(entity, {}))
        if record.remove:
            limits.pop(record.key, None)
        else:
            limits[record.key] = record.value
        if limits:
            self.quotas[entity] = limits
        else:
            self.quotas.pop(entity, None)

    def _delegation_token(self, record: records.DelegationTokenRecord) -> None:
        self._changes.credentials = True
        self.delegation_tokens[record.token_id] = record

    def _remove_delegation_token(self, record: records.RemoveDelegationTokenRecord) -> None:
        self._changes.credentials = True
        self.delegation_tokens.pop(record.token_id, None)

    def _zk_migration_state(self, record: records.ZkMigrationStateRecord) -> None:
        self.zk_migration_state = record.zk_migration_state

    def _no_op(self, record: records.NoOpRecord) -> None:
        """Only advances the offset; a sign of life of the controller."""

    def _check(self, holds: bool, sentence: str) -> None:
        if not holds:
            raise InconsistentRecord(sentence)

    def _publish(self, topic: Topic) -> None:
        self.topics_by_name[topic.name] = self.topics_by_id[topic.id] = topic

    def _writable(self, topic_id: Uuid) -> Topic:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise InconsistentRecord("a partition belongs to a topic that is not there")
        if topic_id not in self._changes.topics:
            self._changes.topics[topic_id] = topic
            topic = Topic(topic.name, topic.id, dict(topic.partitions))
            self._publish(topic)
        return topic

    def _broker(self, broker_id: int, epoch: int) -> Broker:
        broker = self.brokers.get(NodeId(broker_id))
        if broker is None or broker.epoch != epoch:
            raise InconsistentRecord(f"broker {broker_id} changes in an epoch that is not its own")
        return broker

    def _put_broker(self, broker: Broker) -> None:
        self._changes.brokers.add(broker.id)
        self.brokers[broker.id] = broker


def merged(partition: Partition, change: records.PartitionChangeRecord) -> Partition:
    """The partition after a change: fields missing in the record stay, epochs are incremented."""
    replicas = _changed(partition.replicas, change.replicas)
    directories: tuple[Uuid, ...] = partition.directories
    if change.directories is not None:
        directories = tuple(change.directories)
    is_led_anew = change.leader != LEADER_UNCHANGED
    recovery = change.leader_recovery_state
    return Partition(
        leader=NodeId(change.leader) if is_led_anew else partition.leader,
        leader_epoch=partition.leader_epoch + is_led_anew,
        partition_epoch=partition.partition_epoch + 1,
        replicas=replicas,
        isr=_changed(partition.isr, change.isr),
        adding=_changed(partition.adding, change.adding_replicas),
        removing=_changed(partition.removing, change.removing_replicas),
        elr=_changed(partition.elr, change.eligible_leader_replicas),
        last_known_elr=_changed(partition.last_known_elr, change.last_known_elr),
        directories=directories or (MIGRATING_DIRECTORY,) * len(replicas),
        leader_recovery_state=partition.leader_recovery_state
        if recovery == RECOVERY_UNCHANGED
        else recovery,
    )


def _changed(before: tuple[NodeId, ...], change: list[int] | None) -> tuple[NodeId, ...]:
    return before if change is None else _nodes(change)


def _nodes(ids: Iterable[int]) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def _endpoints(end_points: Iterable[Any]) -> dict[str, Endpoint]:
    return {e.name: Endpoint(e.host, e.port, e.security_protocol) for e in end_points}


def _features(features: Iterable[Any]) -> dict[str, VersionRange]:
    return {
        f.name: VersionRange(f.min_supported_version, f.max_supported_version) for f in features
    }


_FOLDS: dict[type, Callable[[ClusterImage, Any], None]] = {
    records.TopicRecord: ClusterImage._topic,
    records.RemoveTopicRecord: ClusterImage._remove_topic,
    records.PartitionRecord: ClusterImage._partition,
    records.PartitionChangeRecord: ClusterImage._partition_change,
    records.ClearElrRecord: ClusterImage._clear_elr,
    records.ConfigRecord: ClusterImage._config,
    records.RegisterBrokerRecord: ClusterImage._register_broker,
    records.UnregisterBrokerRecord: ClusterImage._unregister_broker,
    records.FenceBrokerRecord: ClusterImage._fence_broker,
    records.UnfenceBrokerRecord: ClusterImage._unfence_broker,
    records.BrokerRegistrationChangeRecord: ClusterImage._broker_change,
    records.RegisterControllerRecord: ClusterImage._register_controller,
    records.FeatureLevelRecord: ClusterImage._feature_level,
    records.ProducerIdsRecord: ClusterImage._producer_ids,
    records.AccessControlEntryRecord: ClusterImage._acl,
    records.RemoveAccessControlEntryRecord: ClusterImage._remove_acl,
    records.UserScramCredentialRecord: ClusterImage._scram,
    records.RemoveUserScramCredentialRecord: ClusterImage._remove_scram,
    records.ClientQuotaRecord: ClusterImage._quota,
    records.DelegationTokenRecord: ClusterImage._delegation_token,
    records.RemoveDelegationTokenRecord: ClusterImage._remove_delegation_token,
    records.ZkMigrationStateRecord: ClusterImage._zk_migration_state,
    records.NoOpRecord: ClusterImage._no_op,
}
