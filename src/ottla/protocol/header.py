"""The headers that precede every request and every response.

Whether a request header is flexible follows from API and version; its client id has a classic
length even then, so that any broker can read the header of any ApiVersions request. The response
header of ApiVersions is never flexible, since the client does not know the broker's versions yet.
"""

from struct import Struct
from struct import error as struct_error
from typing import Final, NamedTuple

from ottla.model.errors import ProtocolError
from ottla.protocol.apis import FLEXIBLE_SINCE, ApiKey
from ottla.protocol.schema import NEVER
from ottla.protocol.varint import Buffer, skip_tags

_REQUEST: Final = Struct(">hhih")
_CORRELATION: Final = Struct(">i")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str = ""  # Null is read as empty, as in Kafka.


def decode_request_header(frame: Buffer) -> tuple[RequestHeader, int]:
    """The header at the start of a frame, and the position of the body."""
    try:
        key, version, correlation_id, size = _REQUEST.unpack_from(frame, 0)
        flexible_since = FLEXIBLE_SINCE[key]
        position = _REQUEST.size
        client_id = ""
        if size > 0:
            end = position + size
            if end > len(frame):
                raise ProtocolError(f"a client id claims {size} bytes, more than its frame has")
            client_id = str(frame[position:end], "utf-8", "replace")
            position = end
        if version >= flexible_since:
            count = frame[position]
            position += 1
            if count:
                position = skip_tags(frame, position, len(frame), count)
    except (struct_error, IndexError) as error:
        raise ProtocolError("a request is too short for its header") from error
    except KeyError as error:
        raise ProtocolError(f"there is no API with key {error}") from error
    return RequestHeader(key, version, correlation_id, client_id), position


def encode_request_header(header: RequestHeader) -> bytes:
    client_id = header.client_id.encode()
    start = _REQUEST.pack(header.api_key, header.api_version, header.correlation_id, len(client_id))
    return start + client_id + (b"\0" if is_flexible(header.api_key, header.api_version) else b"")


def response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    start = _CORRELATION.pack(correlation_id)
    return start + b"\0" if _has_flexible_response(api_key, api_version) else start


def decode_response_header(frame: Buffer, api_key: int, api_version: int) -> tuple[int, int]:
    """The correlation id at the start of a frame, and the position of the body."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(frame, 0)
        position = _CORRELATION.size
        if _has_flexible_response(api_key, api_version):
            position = skip_tags(frame, position + 1, len(frame), frame[position])
    except (struct_error, IndexError) as error:
        raise ProtocolError("a response is too short for its header") from error
    return correlation_id, position


def is_flexible(api_key: int, api_version: int) -> bool:
    return api_version >= FLEXIBLE_SINCE.get(api_key, NEVER)


def _has_flexible_response(api_key: int, api_version: int) -> bool:
    return api_key != ApiKey.API_VERSIONS and is_flexible(api_key, api_version)
