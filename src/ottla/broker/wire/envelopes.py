"""Envelope (api key 58), version 0: a request that a broker forwards for one of its clients.

Brokers of Ottla and of Apache Kafka wrap such a request, header and all, with the principal and the
address of the client. The response is wrapped in the same way, unless the active controller is
elsewhere: that is for the broker to know.
"""

import logging
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any, Final, NamedTuple

from ottla.broker.context import ClusterView
from ottla.broker.wire.apis import Entry, is_enveloped
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.request_budget import decode_request
from ottla.broker.wire.responses import send
from ottla.env.network import Piece
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.model.principal import Origin
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
)
from ottla.protocol.messages import envelope as wire
from ottla.protocol.principal import decode_principal, encode_principal

logger = logging.getLogger(__name__)

FRAME_SIZE_BYTES: Final = 4
FORWARDED_CORRELATION_ID: Final = 0  # Of the request inside; that outside tells them apart.


class EnvelopedReply(Reply):
    """The place of a request in an envelope: its response completes the envelope's own reply."""

    __slots__ = ("_origin", "envelope")

    def __init__(self, envelope: Reply, header: RequestHeader, origin: Origin) -> None:
        super().__init__(
            envelope.connection,
            header.correlation_id,
            header.api_version,
            header.client_id,
            envelope.deciders,
        )
        self.envelope = envelope
        self._origin = origin

    @property
    def origin(self) -> Origin:
        return self._origin

    def complete(self, pieces: Sequence[Piece]) -> None:
        assert self.pieces is None, "a request is answered once"
        self.pieces = pieces
        (frame,) = pieces
        assert isinstance(frame, bytes), "requests in envelopes are answered by `send`"
        send(self.envelope, wire.Response(frame[FRAME_SIZE_BYTES:]))

    def fail(self, error: Exception) -> None:
        """Answer with an error: the connection is shared with requests of other clients."""
        logger.error("a response cannot be put into an envelope", exc_info=error)
        send(self.envelope, wire.Response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))


class Unwrapped(NamedTuple):
    entry: Entry
    request: Any
    reply: EnvelopedReply


def unwrap(
    request: wire.Request, reply: Reply, cluster: ClusterView, entry_of: Callable[[int], Entry]
) -> Unwrapped:
    """The request in the envelope and where to answer it; Refusal if it cannot be served."""
    try:
        header, position = decode_request_header(request.request_data)
    except ProtocolError as error:
        raise Refusal(ErrorCode.INVALID_REQUEST) from error
    if not is_enveloped(header.api_key):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    entry = entry_of(header.api_key)
    if header.api_version not in entry.versions:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION)
    try:
        origin = _origin(request, header)
    except (ProtocolError, ValueError) as error:
        raise Refusal(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from error
    try:
        body = request.request_data[position:]
        inner: object = decode_request(entry.request, body, header.api_version, cluster.image)
    except ProtocolError as error:
        raise Refusal(ErrorCode.INVALID_REQUEST) from error
    return Unwrapped(entry, inner, EnvelopedReply(reply, header, origin))


def _origin(request: wire.Request, header: RequestHeader) -> Origin:
    host = str(ip_address(bytes(request.client_host_address)))
    return Origin(decode_principal(request.request_principal), header.client_id, host)


def wrap(request: Any, version: int, origin: Origin) -> wire.Request:  # noqa: ANN401
    """The envelope of a request that is forwarded in this version."""
    header = RequestHeader(request.API_KEY, version, FORWARDED_CORRELATION_ID, origin.client_id)
    try:
        host = ip_address(origin.host.partition("%")[0]).packed
    except ValueError:  # A simulated host has a name.
        host = bytes(4)
    data = encode_request_header(header) + encode(request, version)
    return wire.Request(data, encode_principal(origin.principal), host)


def opened(response: wire.Response, of: type[Any], version: int) -> Any:  # noqa: ANN401
    """The response in an envelope; raises the Refusal of an envelope that was not opened."""
    if response.error_code:
        raise Refusal(ErrorCode(response.error_code))
    data = response.response_data or b""
    _, position = decode_response_header(data, of.API_KEY, version)
    return decode(of, data[position:], version)
