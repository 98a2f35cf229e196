"""DescribeConfigs (api key 32), versions 1 to 4.

v1   synonyms   v3   types and documentation   v4   flexible encoding

Topics, groups and this broker list every config they have; the cluster's default and client
metrics only what is set. Loggers: the root alone, since the levels of parts cannot be set.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from ottla.broker.dispatch import Context, handles
from ottla.metadata.cluster import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.metadata.configs.description import (
    Layers,
    Source,
    describe_broker,
    describe_cluster_default,
    describe_topic,
)
from ottla.metadata.configs.group import describe_group
from ottla.metadata.topic_names import fault_of
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.messages import describe_configs as wire

if TYPE_CHECKING:
    from ottla.broker.server import Broker

RESOURCES_PER_TURN: Final = 20


@handles(wire.Request)
async def handle(request: wire.Request, context: Context, broker: "Broker") -> wire.Response:
    results = []
    for number, item in enumerate(request.resources, 1):
        results.append(_result(request, item, broker))
        if number % RESOURCES_PER_TURN == 0:
            await asyncio.sleep(0)  # Consoles ask for all topics at once; others get their turn.
    return wire.Response(results=results)


def _result(
    request: wire.Request, resource: wire.DescribeConfigsResource, broker: "Broker"
) -> wire.DescribeConfigsResult:
    result = wire.DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        configs = _configs(resource.resource_type, resource.resource_name, broker)
    except Refusal as refusal:
        result.error_code, result.error_message = refusal.code, refusal.message
        return result
    wanted = set(resource.configuration_keys or ())
    result.configs = [config for config in configs if not wanted or config.name in wanted]
    for config in result.configs:
        if not request.include_synonyms:
            config.synonyms = []
        if not request.include_documentation:
            config.documentation = None
    return result


def _configs(kind: int, name: str, broker: "Broker") -> list[wire.DescribeConfigsResourceResult]:
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
        level = broker.settings.ottla_log_level.upper()
        return [_plain("root", level, Source.BROKER_LOGGER)]
    return _of_others(kind, name, broker)


def _of_others(kind: int, name: str, broker: "Broker") -> list[wire.DescribeConfigsResourceResult]:
    """Resources that need not exist to be described."""
    if kind not in (CLIENT_METRICS_RESOURCE, GROUP_RESOURCE):
        raise Refusal(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {kind}")
    if not name:
        raise Refusal(ErrorCode.INVALID_REQUEST, "The resource's name must not be empty")
    overrides = broker.image.config_of(kind, name)
    if kind == GROUP_RESOURCE:
        return list(describe_group(_layers(broker), overrides))
    return [_plain(key, value, Source.CLIENT_METRICS) for key, value in overrides.items()]


def _check_is_this_broker(name: str, broker: "Broker", but: str) -> None:
    digits = name.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        message = f"Broker id must be an integer, but it is: {name}"
        raise Refusal(ErrorCode.INVALID_REQUEST, message)
    if int(name) != broker.node_id:
        message = f"Unexpected broker id, expected {broker.node_id} {but} {name}"
        raise Refusal(ErrorCode.INVALID_REQUEST, message)


def _layers(broker: "Broker") -> Layers:
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
