"""An image as records: the contents of a metadata snapshot.

Replaying these records into an empty image gives the same image.
"""

from collections.abc import Iterator
from typing import Any

from ottla.metadata.image.cluster import (
    Broker,
    ControllerNode,
    Endpoint,
    Partition,
    VersionRange,
)
from ottla.metadata.image.features import (
    METADATA_VERSION,
    has_cordoned_directories,
    has_directories,
)
from ottla.metadata.image.image import ClusterImage
from ottla.model.types import Uuid
from ottla.protocol import metadata_records as records
from ottla.protocol.security_records import EntityData


def records_of(image: ClusterImage) -> Iterator[Any]:
    """Features first, since metadata.version determines how the rest is read."""
    assert not image.is_in_transaction, "a snapshot holds whole transactions only"
    version = image.metadata_version
    yield from _features(image)
    for broker in image.brokers.values():
        yield broker_record(broker, version)
    for controller in image.controllers.values():
        yield _controller(controller)
    for topic in image.topics_by_id.values():
        yield records.TopicRecord(name=topic.name, topic_id=topic.id)
        for index, partition in topic.partitions.items():
            yield partition_record(topic.id, index, partition, version)
    for (resource_type, name), config in image.configs.items():
        for key, value in config.items():
            yield records.ConfigRecord(
                resource_type=resource_type, resource_name=name, name=key, value=value
            )
    yield from _quotas(image)
    if image.producer_ids.next_id > 0:
        broker_id, broker_epoch, next_id = image.producer_ids
        yield records.ProducerIdsRecord(
            broker_id=broker_id, broker_epoch=broker_epoch, next_producer_id=next_id
        )
    yield from image.acls.values()
    yield from image.scram.values()
    yield from image.delegation_tokens.values()
    if image.zk_migration_state is not None:
        yield records.ZkMigrationStateRecord(zk_migration_state=image.zk_migration_state)


def partition_record(
    topic_id: Uuid, index: int, partition: Partition, metadata_version: int
) -> records.PartitionRecord:
    """Fields that the metadata.version does not have are left out."""
    return records.PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing),
        adding_replicas=list(partition.adding),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories) if has_directories(metadata_version) else [],
        # An empty list would cost a tag on disk; null means the same.
        eligible_leader_replicas=list(partition.elr) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def broker_record(broker: Broker, metadata_version: int) -> records.RegisterBrokerRecord:
    cordoned = broker.cordoned_directories
    if not has_cordoned_directories(metadata_version):
        cordoned = None
    return records.RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            records.BrokerEndpoint(name, host, port, protocol)
            for name, (host, port, protocol) in broker.endpoints.items()
        ],
        features=[
            records.BrokerFeature(name, low, high) for name, (low, high) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.directories) if has_directories(metadata_version) else [],
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def _controller(controller: ControllerNode) -> records.RegisterControllerRecord:
    endpoints: dict[str, Endpoint] = controller.endpoints
    features: dict[str, VersionRange] = controller.features
    return records.RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.is_zk_migration_ready,
        end_points=[
            records.ControllerEndpoint(name, host, port, protocol)
            for name, (host, port, protocol) in endpoints.items()
        ],
        features=[
            records.ControllerFeature(name, low, high) for name, (low, high) in features.items()
        ],
    )


def _features(image: ClusterImage) -> Iterator[records.FeatureLevelRecord]:
    if METADATA_VERSION in image.features:
        yield records.FeatureLevelRecord(METADATA_VERSION, image.features[METADATA_VERSION])
    for name, level in image.features.items():
        if name != METADATA_VERSION:
            yield records.FeatureLevelRecord(name, level)


def _quotas(image: ClusterImage) -> Iterator[records.ClientQuotaRecord]:
    for entity, limits in image.quotas.items():
        parts = [
            EntityData(entity_type, entity_name)
            for entity_type, entity_name in sorted(entity, key=lambda part: part[0])
        ]
        for key, value in limits.items():
            yield records.ClientQuotaRecord(entity=parts, key=key, value=value)
