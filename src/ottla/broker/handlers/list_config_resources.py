"""ListConfigResources (api key 74), versions 0 to 1: what there is that has configs.

v0  client metrics alone     v1  resource_types, or all kinds if none is named
"""

from collections.abc import Iterator

from ottla.broker.context import BrokerContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.metadata.image.cluster import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import list_config_resources as wire

KINDS_SINCE = 1
# In Kafka's order. Groups and client metrics are there as soon as something is set for them.
KINDS = (
    GROUP_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
)


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: BrokerContext) -> None:
    served = KINDS if reply.version >= KINDS_SINCE else (CLIENT_METRICS_RESOURCE,)
    wanted = request.resource_types or served
    if not set(wanted) <= set(served):
        send(reply, wire.Response(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    listener = reply.connection.listener
    found = [
        wire.ConfigResource(name, kind)
        for kind in KINDS
        if kind in wanted
        for name in _names(kind, listener, broker)
    ]
    send(reply, wire.Response(config_resources=found))


def _names(kind: int, listener: str, broker: BrokerContext) -> Iterator[str]:
    image = broker.image
    if kind == TOPIC_RESOURCE:
        yield from image.topics_by_name
    elif kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        for node in image.brokers.values():
            if not node.is_fenced and listener in node.endpoints:
                yield str(node.id)
    else:
        for (other, name), configs in image.configs.items():
            if other == kind and configs:
                yield name
