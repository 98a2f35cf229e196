"""Envelope (api key 58), version 0: a request that a broker forwards for one of its clients.

Brokers of Ottla and of Apache Kafka wrap such a request, header and all, with the principal and the
address of the client. The response is wrapped in the same way, unless the active controller is
elsewhere: that is for the broker to know.
"""

from collections.abc import Callable
from dataclasses import replace
from ipaddress import ip_address
from typing import Any, Final

from ottla.broker.context import ClusterView
from ottla.broker.wire.apis import Entry, error_response, is_enveloped
from ottla.broker.wire.request_budget import decode_request
from ottla.broker.wire.request_context import RequestContext
from ottla.broker.wire.responses import Encoded
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.model.principal import Origin
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    response_header,
)
from ottla.protocol.messages import envelope as wire
from ottla.protocol.principal import decode_principal, encode_principal

FORWARDED_CORRELATION_ID: Final = 0  # Of the request inside; that outside tells them apart.


async def unwrap(
    request: wire.Request,
    context: RequestContext,
    cluster: ClusterView,
    entry_of: Callable[[int], Entry],
) -> wire.Response:
    """Serve what is in the envelope; `entry_of` finds who does."""
    try:
        header, position = decode_request_header(request.request_data)
    except ProtocolError:
        return wire.Response(error_code=ErrorCode.INVALID_REQUEST)
    if not is_enveloped(header.api_key):
        return wire.Response(error_code=ErrorCode.INVALID_REQUEST)
    entry = entry_of(header.api_key)
    if header.api_version not in entry.versions:
        return wire.Response(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        origin = _origin(request, header)
    except (ProtocolError, ValueError):
        return wire.Response(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    try:
        body = request.request_data[position:]
        inner: object = decode_request(entry.request, body, header.api_version, cluster.image)
    except ProtocolError:
        return wire.Response(error_code=ErrorCode.INVALID_REQUEST)
    within = replace(context, version=header.api_version, origin=origin)
    try:
        answer = await entry.handle(inner, within, cluster)
    except Refusal as refusal:
        if refusal.code == ErrorCode.NOT_CONTROLLER:
            return wire.Response(error_code=refusal.code)
        answer = error_response(
            header.api_key, inner, header.api_version, refusal.code, refusal.message
        )
    return wire.Response(_wrapped(header, answer))


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


def _wrapped(header: RequestHeader, answer: object) -> bytes:
    start = response_header(header.api_key, header.api_version, header.correlation_id)
    if isinstance(answer, Encoded):
        return start + answer.body
    return start + encode(answer, header.api_version)
