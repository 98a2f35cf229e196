"""Envelope (api key 58), version 0: a request that a broker passes on for one of its clients.

Ottla's brokers send such a request as it is. Those of Apache Kafka wrap it, header and all, with
its client's name and address: a cluster that moves from one to the other has both. The answer is
wrapped in the same way, unless the active controller is elsewhere: that is for the broker to know.
"""

from collections.abc import Callable
from dataclasses import replace

from ottla.broker.context import ClusterView
from ottla.broker.wire.apis import Entry, error_response, is_enveloped
from ottla.broker.wire.request_budget import decode_request
from ottla.broker.wire.request_context import RequestContext
from ottla.broker.wire.responses import Encoded
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, decode_request_header, response_header
from ottla.protocol.messages import envelope as wire


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
        body = request.request_data[position:]
        inner: object = decode_request(entry.request, body, header.api_version, cluster.image)
    except ProtocolError:
        return wire.Response(error_code=ErrorCode.INVALID_REQUEST)
    within = replace(context, version=header.api_version, client_id=header.client_id)
    try:
        answer = await entry.handle(inner, within, cluster)
    except Refusal as refusal:
        if refusal.code == ErrorCode.NOT_CONTROLLER:
            return wire.Response(error_code=refusal.code)
        answer = error_response(
            header.api_key, inner, header.api_version, refusal.code, refusal.message
        )
    return wire.Response(_wrapped(header, answer))


def _wrapped(header: RequestHeader, answer: object) -> bytes:
    start = response_header(header.api_key, header.api_version, header.correlation_id)
    if isinstance(answer, Encoded):
        return start + answer.body
    return start + encode(answer, header.api_version)
