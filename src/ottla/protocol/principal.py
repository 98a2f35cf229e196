"""A principal in the bytes of an Envelope, as Kafka's default principal builder writes it."""

from struct import Struct
from typing import ClassVar, Final

from ottla.model.errors import ProtocolError
from ottla.model.principal import Principal
from ottla.protocol.codec import decode, encode
from ottla.protocol.schema import boolean, message, string
from ottla.protocol.varint import Buffer

_VERSION: Final = Struct(">h")


@message
class DefaultPrincipalData:
    VERSIONS: ClassVar = range(0, 1)
    FLEXIBLE_SINCE: ClassVar = 0

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()


def encode_principal(principal: Principal) -> bytes:
    return _VERSION.pack(0) + encode(DefaultPrincipalData(principal.type, principal.name), 0)


def decode_principal(data: Buffer | None) -> Principal:
    """Raises ProtocolError for bytes that are no principal of a known version."""
    if data is None or len(data) < _VERSION.size:
        raise ProtocolError("an Envelope has no principal")
    version: int = _VERSION.unpack_from(data)[0]
    if version not in DefaultPrincipalData.VERSIONS:
        raise ProtocolError(f"principals have no version {version}")
    decoded = decode(DefaultPrincipalData, data[_VERSION.size :], version)
    return Principal(decoded.type, decoded.name)
