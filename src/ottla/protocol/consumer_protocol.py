"""Subscription and assignment of consumers, in the opaque bytes of the classic protocol.

Both start with their version as two bytes; a reader decodes a newer version as the newest known
one, because versions only append fields.
"""

from struct import Struct
from typing import ClassVar, TypeVar

from ottla.model.errors import ProtocolError
from ottla.protocol.codec import decode_from, encode_into
from ottla.protocol.schema import NEVER, array, binary, int32, message, string
from ottla.protocol.varint import Buffer

CONSUMER_PROTOCOL_TYPE = "consumer"

_VERSION = Struct(">h")


@message
class SubscriptionTopicPartition:
    topic: str = string(since=1)
    partitions: list[int] = array(int32, since=1)


@message
class ConsumerProtocolSubscription:
    VERSIONS: ClassVar = range(0, 4)
    FLEXIBLE_SINCE: ClassVar = NEVER

    topics: list[str] = array(string)
    user_data: bytes | None = binary(None, nullable=0)
    owned_partitions: list[SubscriptionTopicPartition] = array(
        SubscriptionTopicPartition, since=1, ignorable=True
    )
    generation_id: int = int32(-1, since=2, ignorable=True)
    rack_id: str | None = string(None, since=3, nullable=3, ignorable=True)


@message
class AssignmentTopicPartition:
    topic: str = string()
    partitions: list[int] = array(int32)


@message
class ConsumerProtocolAssignment:
    VERSIONS: ClassVar = range(0, 4)
    FLEXIBLE_SINCE: ClassVar = NEVER

    assigned_partitions: list[AssignmentTopicPartition] = array(AssignmentTopicPartition)
    user_data: bytes | None = binary(None, nullable=0)


M = TypeVar("M", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def decode_versioned(cls: type[M], data: Buffer) -> tuple[M, int]:
    """The message and its version; ProtocolError if the bytes are malformed."""
    if len(data) < _VERSION.size:
        raise ProtocolError(f"{cls.__name__} of {len(data)} bytes has no version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise ProtocolError(f"{cls.__name__} has no version {version}")
    version = min(version, cls.VERSIONS.stop - 1)
    return decode_from(cls, data, _VERSION.size, version)[0], version


def encode_versioned(value: object, version: int) -> bytes:
    out = bytearray(_VERSION.pack(version))
    encode_into(value, version, out)
    return bytes(out)
