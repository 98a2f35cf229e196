"""Envelope (api key 58), version 0: a request that a broker passes on for one of its clients.

Ottla's brokers send such a request as it is. Those of Apache Kafka wrap it, header and all, with
its client's name and address: a cluster that moves from one to the other has both. The answer is
wrapped in the same way, unless the active controller is elsewhere: that is for the broker to know.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.broker.dispatch import Context, Entry
from ottla.broker.error_responses import error_response
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.header import RequestHeader, decode_request_header, response_header
from ottla.protocol.messages import envelope as wire

if TYPE_CHECKING:
    from ottla.broker.server import Broker

# Kafka's brokers answer all others themselves.
FORWARDED: Final = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
    }
)


async def unwrap(
    request: wire.Request, context: Context, broker: "Broker", entry_of: Callable[[int], Entry]
) -> wire.Response:
    """Serve what is in the envelope; `entry_of` finds who does."""
    try:
        header, position = decode_request_header(request.request_data)
    except ProtocolError:
        return wire.Response(error_code=ErrorCode.INVALID_REQUEST)
    if header.api_key not in FORWARDED:
        return wire.Response(error_code=ErrorCode.INVALID_REQUEST)
    entry = entry_of(header.api_key)
    if header.api_version not in entry.versions:
        return wire.Response(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        inner: object = decode(entry.request, request.request_data[position:], header.api_version)
    except ProtocolError:
        return wire.Response(error_code=ErrorCode.INVALID_REQUEST)
    within = Context(header.api_version, header.client_id, context.connection)
    try:
        answer = await entry.handle(inner, within, broker)
    except Refusal as refusal:
        if refusal.code == ErrorCode.NOT_CONTROLLER:
            return wire.Response(error_code=refusal.code)
        answer = error_response(
            header.api_key, inner, header.api_version, refusal.code, refusal.message
        )
    return wire.Response(_wrapped(header, answer))


def _wrapped(header: RequestHeader, answer: object) -> bytes:
    start = response_header(header.api_key, header.api_version, header.correlation_id)
    return start + encode(answer, header.api_version)
