"""The records of `__consumer_offsets`: committed offsets and classic groups, as Kafka writes them.

A key begins with the type of the record as two bytes, a value with the version of its layout. A
record without a value says that what its key names is gone. The records of consumer groups
(KIP-848) have a module of their own, `consumer_group_records`.

    OffsetCommitValue   v1 expire_timestamp, v2 without it, v3 leader_epoch, v4 topic_id
    GroupMetadataValue  v1 rebalance_timeout, v2 current_state_timestamp, v3 group_instance_id
"""

from functools import lru_cache
from struct import Struct
from typing import Any, ClassVar, Final, NamedTuple

from ottla.model.errors import ProtocolError
from ottla.model.types import ZERO_UUID
from ottla.protocol import consumer_group_records as consumer
from ottla.protocol.codec import decode_from, encode_into
from ottla.protocol.schema import NEVER, array, binary, int32, int64, message, string, uuid
from ottla.protocol.varint import Buffer

# ruff: noqa: ANN401  Keys and values are of the class that the type of their record has.


@message
class LegacyOffsetCommitKey:
    API_KEY: ClassVar = 0
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group: str = string()
    topic: str = string()
    partition: int = int32()


@message
class OffsetCommitKey:
    API_KEY: ClassVar = 1
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group: str = string()
    topic: str = string()
    partition: int = int32()


@message
class OffsetCommitValue:
    API_KEY: ClassVar = 1
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    offset: int = int64()
    leader_epoch: int = int32(-1, since=3, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(-1, since=1, until=1, ignorable=True)
    topic_id: bytes = uuid(since=4, tag=0, ignorable=True)


@message
class GroupMetadataKey:
    API_KEY: ClassVar = 2
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    group: str = string()


@message
class MemberMetadata:
    member_id: str = string()
    group_instance_id: str | None = string(None, since=3, nullable=3, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(-1, since=1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = binary()
    assignment: bytes = binary()


@message
class GroupMetadataValue:
    API_KEY: ClassVar = 2
    VERSIONS: ClassVar = range(0, 5)
    FLEXIBLE_SINCE: ClassVar = 4

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable=0)
    leader: str | None = string(nullable=0)
    current_state_timestamp: int = int64(-1, since=2, ignorable=True)
    members: list[MemberMetadata] = array(MemberMetadata)


class GroupRecord(NamedTuple):
    key: Any
    value: Any  # None: a tombstone.


_VALUES: Final[dict[type, type]] = {
    LegacyOffsetCommitKey: OffsetCommitValue,
    OffsetCommitKey: OffsetCommitValue,
    GroupMetadataKey: GroupMetadataValue,
    **consumer.VALUES,
}
_KEYS: Final[dict[int, type]] = {key.API_KEY: key for key in _VALUES}  # type: ignore[attr-defined]

# Versions that Kafka 4.3 writes: readable since release 2.1 and 4.1.
_WRITTEN: Final[dict[type, int]] = {GroupMetadataValue: 3, OffsetCommitValue: 4}
_EXPIRING_VERSION: Final = 1  # The only version with an expiry time.

_TYPE = Struct(">h")
# Version 4: offset, epoch, an empty string, a time, the number of tags, of which one is the topic
# id.
_COMMIT = Struct(">hqibqb")
_COMMIT_OF_TOPIC = Struct(">hqibqbbb16s")
# Prefixes of the keys of committed offsets: only the last record of each key matters.
COMMIT_KEYS: Final = tuple(
    _TYPE.pack(key.API_KEY) for key in (LegacyOffsetCommitKey, OffsetCommitKey)
)


def encode_key(key: Any) -> bytes:
    if type(key) is OffsetCommitKey and len(key.group) <= _CACHED_GROUP_CHARACTERS_MAX:
        return _encode_commit_key(key.group, key.topic, key.partition)
    out = bytearray(_TYPE.pack(key.API_KEY))
    encode_into(key, 0, out)
    return bytes(out)


_CACHED_GROUP_CHARACTERS_MAX = 255  # Clients choose group ids, of up to 32 KiB.


@lru_cache(maxsize=8192)  # A consumer commits the same partitions repeatedly.
def _encode_commit_key(group: str, topic: str, partition: int) -> bytes:
    out = bytearray(_TYPE.pack(OffsetCommitKey.API_KEY))
    encode_into(OffsetCommitKey(group, topic, partition), 0, out)
    return bytes(out)


def encode_value(value: Any) -> bytes | None:
    if value is None:
        return None
    if type(value) is OffsetCommitValue and not value.metadata and value.expire_timestamp == -1:
        return _encode_commit(value)
    version = _WRITTEN.get(type(value), 0)
    if version == _WRITTEN[OffsetCommitValue] and value.expire_timestamp != -1:
        version = _EXPIRING_VERSION
    out = bytearray(_TYPE.pack(version))
    encode_into(value, version, out)
    return bytes(out)


def _encode_commit(value: OffsetCommitValue) -> bytes:
    """Hand-written encoding of the usual commit, in a quarter of the time."""
    plain = (4, value.offset, value.leader_epoch, 1, value.commit_timestamp)
    if value.topic_id == ZERO_UUID:
        return _COMMIT.pack(*plain, 0)
    return _COMMIT_OF_TOPIC.pack(*plain, 1, 0, 16, value.topic_id)


def decode_record(key: Buffer, value: Buffer | None) -> GroupRecord | None:
    """The record, or None if its type is unknown."""
    if len(key) < _TYPE.size:
        raise ProtocolError(f"a key of {len(key)} bytes has no type")
    key_class = _KEYS.get(_TYPE.unpack_from(key)[0])
    if key_class is None:
        return None
    decoded_key: Any = decode_from(key_class, key, _TYPE.size, 0)[0]
    if value is None:
        return GroupRecord(decoded_key, None)
    if len(value) < _TYPE.size:
        raise ProtocolError(f"a value of {len(value)} bytes has no version")
    version = _TYPE.unpack_from(value)[0]
    value_class: Any = _VALUES[key_class]
    if version not in value_class.VERSIONS:
        raise ProtocolError(f"{value_class.__name__} has no version {version}")
    return GroupRecord(decoded_key, decode_from(value_class, value, _TYPE.size, version)[0])
