"""Control records: what brokers write into logs for each other, in batches marked as control.

The key is a version and a type. The value of a transaction's end is its message after two bytes of
version; the quorum's own messages carry their version as their first field, which comes to the
same bytes. Markers of aborted and committed transactions differ in the key alone.

    LeaderChangeMessage  v1 voter_directory_id
"""

from enum import IntEnum
from struct import Struct
from struct import error as struct_error
from typing import ClassVar, Final

from ottla.model.errors import ProtocolError
from ottla.protocol.codec import decode_from, encode
from ottla.protocol.schema import (
    NEVER,
    array,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uint16,
    uuid,
)
from ottla.protocol.varint import Buffer


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@message
class EndTxnMarker:
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = NEVER

    coordinator_epoch: int = int32()


@message
class LeaderChangeVoter:
    voter_id: int = int32()
    voter_directory_id: bytes = uuid(since=1)


@message
class LeaderChangeMessage:
    VERSIONS: ClassVar = range(0, 2)
    FLEXIBLE_SINCE: ClassVar = 0

    version: int = int16()
    leader_id: int = int32()
    voters: list[LeaderChangeVoter] = array(LeaderChangeVoter)
    granting_voters: list[LeaderChangeVoter] = array(LeaderChangeVoter)


@message
class SnapshotHeaderRecord:
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    version: int = int16()
    last_contained_log_timestamp: int = int64()


@message
class SnapshotFooterRecord:
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    version: int = int16()


@message
class KRaftVersionRecord:
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    version: int = int16()
    kraft_version: int = int16()


@message
class Endpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message
class KRaftVersionFeature:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message
class Voter:
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    endpoints: list[Endpoint] = array(Endpoint)
    kraft_version_feature: KRaftVersionFeature = struct(KRaftVersionFeature)


@message
class VotersRecord:
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    version: int = int16()
    voters: list[Voter] = array(Voter)


QuorumControl = (
    LeaderChangeMessage
    | SnapshotHeaderRecord
    | SnapshotFooterRecord
    | KRaftVersionRecord
    | VotersRecord
)
Control = EndTxnMarker | QuorumControl

_KEY: Final = Struct(">hh")
_VERSION: Final = Struct(">h")
_CLASSES: Final[dict[int, type[Control]]] = {
    ControlType.ABORT: EndTxnMarker,
    ControlType.COMMIT: EndTxnMarker,
    ControlType.LEADER_CHANGE: LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: VotersRecord,
}


def encode_control(kind: ControlType, control: Control) -> tuple[bytes, bytes]:
    """Key and value of a control record."""
    assert type(control) is _CLASSES[kind], "the type in the key is that of the value"
    if isinstance(control, EndTxnMarker):
        value = _VERSION.pack(0) + encode(control, 0)
    else:
        value = encode(control, control.version)
    return _KEY.pack(0, kind), value


def control_type(key: Buffer) -> int:
    """The type in a control record's key, which may be unknown."""
    try:
        version, kind = _KEY.unpack_from(key, 0)
    except struct_error as error:
        raise ProtocolError("the key of a control record has fewer than four bytes") from error
    if version < 0:
        raise ProtocolError(f"the key of a control record has version {version}")
    number: int = kind
    return number


def decode_control(key: Buffer, value: Buffer) -> tuple[ControlType, Control] | None:
    """The type and the message; None for an unknown type, which readers skip."""
    kind = control_type(key)
    cls = _CLASSES.get(kind)
    if cls is None:
        return None
    try:
        (version,) = _VERSION.unpack_from(value, 0)
    except struct_error as error:
        raise ProtocolError("a control record has no version") from error
    if version < 0:
        raise ProtocolError(f"a control record has version {version}")
    if cls is EndTxnMarker:  # Later versions would only append fields.
        return ControlType(kind), decode_from(EndTxnMarker, value, _VERSION.size, 0)[0]
    if version not in cls.VERSIONS:
        raise ProtocolError(f"there is no version {version} of {cls.__name__}")
    return ControlType(kind), decode_from(cls, value, 0, version)[0]
