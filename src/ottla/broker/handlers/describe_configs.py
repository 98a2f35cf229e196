"""DescribeConfigs (api key 32), versions 1 to 4.

v1   synonyms   v3   types and documentation   v4   flexible encoding

Topics, groups and this broker list every config they have; the cluster's default and client
metrics only what is set. Loggers: their levels in force in this process.
"""

from typing import Final, Protocol

from ottla.broker.context import BrokerContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.batch_scans import BatchScans
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import Encoded
from ottla.env.log_levels import levels
from ottla.metadata.configs.description import (
    Layers,
    Source,
    describe_broker,
    describe_cluster_default,
    describe_topic,
)
from ottla.metadata.configs.group import describe_group
from ottla.metadata.image.cluster import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.metadata.image.topic_names import fault_of
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.numbers import parse_integer
from ottla.model.types import NODE_ID_BITS
from ottla.protocol.codec import encode
from ottla.protocol.messages import describe_configs as wire
from ottla.protocol.varint import append_uvarint

# What describing and encoding one takes of a loop turn's budget, by its kind.
COST_US: Final = {TOPIC_RESOURCE: 300, GROUP_RESOURCE: 100, BROKER_RESOURCE: 3000}
OTHER_COST_US: Final = 20
# Of the answer, for groups that set nothing: any name is one, and all are described alike.
UNSET_GROUPS_BYTES_MAX: Final = 256 * 1024


class ConfigsContext(BrokerContext, Protocol):
    """The time that describing many may take: consoles ask for all topics at once."""

    @property
    def scans(self) -> BatchScans: ...


@handles(wire.Request)
async def handle(request: wire.Request, reply: Reply, broker: ConfigsContext) -> Encoded:
    parts: list[bytes] = []
    unset_bytes = 0
    resources = {(one.resource_type, one.resource_name): one for one in request.resources}
    for (kind, name), resource in resources.items():
        await broker.scans.budget.wait(COST_US.get(kind, OTHER_COST_US))
        is_unset = kind == GROUP_RESOURCE and not broker.image.config_of(kind, name)
        if is_unset and unset_bytes > UNSET_GROUPS_BYTES_MAX:
            message = "Too many groups without configs of their own."
            result = _refused(resource, Refusal(ErrorCode.INVALID_REQUEST, message))
        else:
            result = _result(request, resource, broker)
        parts.append(_encoded(result, reply.version))
        if is_unset:
            unset_bytes += len(parts[-1])
    return Encoded(wire.Response, _body(parts, reply.version))


def _encoded(result: wire.DescribeConfigsResult, version: int) -> bytes:
    """One result as it lies in a response."""
    alone = encode(wire.Response(results=[result]), version)
    around = len(_body([], version))
    return alone[around - 1 : -1] if version >= wire.Response.FLEXIBLE_SINCE else alone[around:]


def _body(parts: list[bytes], version: int) -> bytes:
    """A response of results that are encoded already."""
    start = bytearray(4)  # The throttle time.
    if version < wire.Response.FLEXIBLE_SINCE:
        return b"".join([start, len(parts).to_bytes(4, "big"), *parts])
    append_uvarint(start, len(parts) + 1)
    return b"".join([start, *parts, b"\0"])


def _refused(
    resource: wire.DescribeConfigsResource, refusal: Refusal
) -> wire.DescribeConfigsResult:
    return wire.DescribeConfigsResult(
        refusal.code, refusal.message, resource.resource_type, resource.resource_name
    )


def _result(
    request: wire.Request, resource: wire.DescribeConfigsResource, broker: BrokerContext
) -> wire.DescribeConfigsResult:
    result = wire.DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        configs = _configs(resource.resource_type, resource.resource_name, broker)
    except Refusal as refusal:
        return _refused(resource, refusal)
    wanted = set(resource.configuration_keys or ())
    result.configs = [config for config in configs if not wanted or config.name in wanted]
    for config in result.configs:
        if not request.include_synonyms:
            config.synonyms = []
        if not request.include_documentation and resource.resource_type != BROKER_LOGGER_RESOURCE:
            config.documentation = None
    return result


def _configs(
    kind: int, name: str, broker: BrokerContext
) -> list[wire.DescribeConfigsResourceResult]:
    if kind == TOPIC_RESOURCE:
        if fault := fault_of(name):
            raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")
        if name not in broker.image.topics_by_name:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return list(describe_topic(_layers(broker), broker.image.config_of(kind, name)))
    if kind == BROKER_RESOURCE:
        if not name:
            return list(describe_cluster_default(_layers(broker)))
        _check_is_this_broker(name, broker, "or empty string, but received")
        return list(describe_broker(_layers(broker)))
    if kind == BROKER_LOGGER_RESOURCE:
        if not name:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_is_this_broker(name, broker, "but received")
        return [_plain(*level, Source.BROKER_LOGGER) for level in levels().items()]
    return _of_others(kind, name, broker)


def _of_others(
    kind: int, name: str, broker: BrokerContext
) -> list[wire.DescribeConfigsResourceResult]:
    """Resources that need not exist to be described."""
    if kind not in (CLIENT_METRICS_RESOURCE, GROUP_RESOURCE):
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind}")
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "The resource's name must not be empty")
    overrides = broker.image.config_of(kind, name)
    if kind == GROUP_RESOURCE:
        return list(describe_group(_layers(broker), overrides))
    return [_plain(key, value, Source.CLIENT_METRICS) for key, value in overrides.items()]


def _check_is_this_broker(name: str, broker: BrokerContext, but: str) -> None:
    try:
        node_id = parse_integer(name, NODE_ID_BITS)
    except ValueError:
        message = f"Broker id must be an integer, but it is: {name}"
        raise Refusal(ErrorCode.INVALID_REQUEST, message) from None
    if node_id != broker.node_id:
        message = f"Unexpected broker id, expected {broker.node_id} {but} {name}"
        raise Refusal(ErrorCode.INVALID_REQUEST, message)


def _layers(broker: BrokerContext) -> Layers:
    node_id = str(broker.node_id)
    return Layers(
        this_broker=broker.image.config_of(BROKER_RESOURCE, node_id),
        cluster_default=broker.image.config_of(BROKER_RESOURCE, ""),
        # Whichever of the two names the file has, both are answered.
        static={**broker.settings.static, "node.id": node_id, "broker.id": node_id},
    )


def _plain(name: str, value: str, source: Source) -> wire.DescribeConfigsResourceResult:
    return wire.DescribeConfigsResourceResult(
        name=name, value=value, read_only=False, config_source=int(source), is_sensitive=False
    )
