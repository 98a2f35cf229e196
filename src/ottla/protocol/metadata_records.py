"""The records of `__cluster_metadata`: all that a cluster knows about itself, as Kafka writes it.

A record is framed by three unsigned varints: the frame's version (1), the record's key and its
version. Those about security have a module of their own, `security_records`.

    RegisterBroker            v1 in_controlled_shutdown, v2 is_migrating_zk_broker, v3 log_dirs,
                              v4 cordoned_log_dirs
    BrokerRegistrationChange  v1 in_controlled_shutdown, v2 log_dirs, v3 cordoned_log_dirs
    Partition                 v1 directories, v2 eligible_leader_replicas and last_known_elr
    PartitionChange           the same as Partition
"""

from typing import ClassVar, Final, get_args

from ottla.model.errors import ProtocolError
from ottla.protocol.codec import decode_from, encode_into
from ottla.protocol.schema import (
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    uint16,
    uuid,
)
from ottla.protocol.security_records import (
    AccessControlEntryRecord as AccessControlEntryRecord,
)
from ottla.protocol.security_records import (
    ClientQuotaRecord as ClientQuotaRecord,
)
from ottla.protocol.security_records import (
    DelegationTokenRecord as DelegationTokenRecord,
)
from ottla.protocol.security_records import (
    RemoveAccessControlEntryRecord as RemoveAccessControlEntryRecord,
)
from ottla.protocol.security_records import (
    RemoveDelegationTokenRecord as RemoveDelegationTokenRecord,
)
from ottla.protocol.security_records import (
    RemoveUserScramCredentialRecord as RemoveUserScramCredentialRecord,
)
from ottla.protocol.security_records import (
    UserScramCredentialRecord as UserScramCredentialRecord,
)
from ottla.protocol.varint import Buffer, append_uvarint, read_uvarint


@message
class BrokerEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@message
class BrokerFeature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message
class RegisterBrokerRecord:
    API_KEY: ClassVar = 0
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean(since=2)
    incarnation_id: bytes = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(nullable=0)
    fenced: bool = boolean(True)
    in_controlled_shutdown: bool = boolean(since=1)
    log_dirs: list[bytes] = array(uuid, since=3, tag=0)
    cordoned_log_dirs: list[bytes] | None = array(uuid, default=None, since=4, nullable=4, tag=1)


@message
class UnregisterBrokerRecord:
    API_KEY: ClassVar = 1
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    broker_epoch: int = int64()


@message
class TopicRecord:
    API_KEY: ClassVar = 2
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    name: str = string()
    topic_id: bytes = uuid()


@message
class PartitionRecord:
    API_KEY: ClassVar = 3
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    partition_id: int = int32(-1)
    topic_id: bytes = uuid()
    replicas: list[int] = array(int32)
    isr: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    leader: int = int32(-1)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(-1)
    partition_epoch: int = int32(-1)
    directories: list[bytes] = array(uuid, since=1)
    eligible_leader_replicas: list[int] | None = array(
        int32, default=None, since=2, nullable=2, tag=1
    )
    last_known_elr: list[int] | None = array(int32, default=None, since=2, nullable=2, tag=2)


@message
class ConfigRecord:
    API_KEY: ClassVar = 4
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable=0)


@message
class PartitionChangeRecord:
    API_KEY: ClassVar = 5
    VERSIONS: ClassVar = range(0, 3)
    FLEXIBLE_SINCE: ClassVar = 0

    partition_id: int = int32(-1)
    topic_id: bytes = uuid()
    isr: list[int] | None = array(int32, default=None, nullable=0, tag=0)
    leader: int = int32(-2, tag=1)
    replicas: list[int] | None = array(int32, default=None, nullable=0, tag=2)
    removing_replicas: list[int] | None = array(int32, default=None, nullable=0, tag=3)
    adding_replicas: list[int] | None = array(int32, default=None, nullable=0, tag=4)
    leader_recovery_state: int = int8(-1, tag=5)
    directories: list[bytes] | None = array(uuid, default=None, since=1, nullable=1, tag=8)
    eligible_leader_replicas: list[int] | None = array(
        int32, default=None, since=2, nullable=2, tag=6
    )
    last_known_elr: list[int] | None = array(int32, default=None, since=2, nullable=2, tag=7)


@message
class FenceBrokerRecord:
    API_KEY: ClassVar = 7
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    id: int = int32()
    epoch: int = int64()


@message
class UnfenceBrokerRecord:
    API_KEY: ClassVar = 8
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    id: int = int32()
    epoch: int = int64()


@message
class RemoveTopicRecord:
    API_KEY: ClassVar = 9
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    topic_id: bytes = uuid()


@message
class FeatureLevelRecord:
    API_KEY: ClassVar = 12
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    name: str = string()
    feature_level: int = int16()


@message
class ProducerIdsRecord:
    API_KEY: ClassVar = 15
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    broker_epoch: int = int64(-1)
    next_producer_id: int = int64()


@message
class BrokerRegistrationChangeRecord:
    API_KEY: ClassVar = 17
    VERSIONS: ClassVar = range(0, 4)
    FLEXIBLE_SINCE: ClassVar = 0

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    in_controlled_shutdown: int = int8(since=1, tag=1)
    log_dirs: list[bytes] = array(uuid, since=2, tag=2)
    cordoned_log_dirs: list[bytes] | None = array(uuid, default=None, since=3, nullable=3, tag=3)


@message
class NoOpRecord:
    API_KEY: ClassVar = 20
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0


@message
class ZkMigrationStateRecord:
    API_KEY: ClassVar = 21
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    zk_migration_state: int = int8()


@message
class BeginTransactionRecord:
    API_KEY: ClassVar = 23
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    name: str | None = string(None, nullable=0, tag=0)


@message
class EndTransactionRecord:
    API_KEY: ClassVar = 24
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0


@message
class AbortTransactionRecord:
    API_KEY: ClassVar = 25
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    reason: str | None = string(None, nullable=0, tag=0)


@message
class ControllerEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@message
class ControllerFeature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message
class RegisterControllerRecord:
    API_KEY: ClassVar = 27
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    end_points: list[ControllerEndpoint] = array(ControllerEndpoint)
    features: list[ControllerFeature] = array(ControllerFeature)


@message
class ClearElrRecord:
    API_KEY: ClassVar = 28
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    topic_name: str = string()


MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | NoOpRecord
    | ZkMigrationStateRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | RegisterControllerRecord
    | ClearElrRecord
    | DelegationTokenRecord
    | UserScramCredentialRecord
    | ClientQuotaRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | RemoveUserScramCredentialRecord
    | RemoveDelegationTokenRecord
)

_FRAME_VERSION: Final = 1
_CLASSES: Final = {cls.API_KEY: cls for cls in get_args(MetadataRecord)}


def encode_record(record: MetadataRecord, version: int) -> bytes:
    out = bytearray()
    append_uvarint(out, _FRAME_VERSION)
    append_uvarint(out, record.API_KEY)
    append_uvarint(out, version)
    encode_into(record, version, out)
    return bytes(out)


def decode_record(data: Buffer) -> MetadataRecord:
    """Decode the record in `data`; unknown records and trailing bytes are refused, as in Kafka."""
    frame_version, position = read_uvarint(data, 0)
    if frame_version != _FRAME_VERSION:
        raise ProtocolError(f"a metadata record has the unknown frame version {frame_version}")
    key, position = read_uvarint(data, position)
    version, position = read_uvarint(data, position)
    cls = _CLASSES.get(key)
    if cls is None:
        raise ProtocolError(f"there is no metadata record with key {key}")
    if version not in cls.VERSIONS:
        raise ProtocolError(f"{cls.__name__} has no version {version}")
    record: MetadataRecord
    record, position = decode_from(cls, data, position, version)
    if position != len(data):
        raise ProtocolError(f"{len(data) - position} bytes follow a {cls.__name__}")
    return record
