"""DescribeCluster (api key 60), versions 0 to 2.

v1  endpoint_type: brokers or controllers, as the listener is     v2  fenced brokers, if asked for
"""

from collections.abc import Iterator

from ottla.broker.handlers.context import QuorumContext
from ottla.broker.wire import cluster_view
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import describe_cluster as wire

BROKERS, CONTROLLERS = 1, 2
NAMES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: QuorumContext) -> None:
    listener = reply.connection.listener
    is_controller = listener in broker.settings.controller_listener_names
    ours = CONTROLLERS if is_controller else BROKERS
    if request.endpoint_type != ours:
        send(reply, _mismatch(ours, request.endpoint_type, reply.version))
        return
    nodes = list(_controllers(broker) if is_controller else _brokers(request, broker, listener))
    response = wire.Response(
        endpoint_type=ours,
        cluster_id=broker.image.cluster_id,
        # Clients of brokers need not know the controller: any broker takes what is meant for it.
        controller_id=broker.quorum.quorum.leadership.leader if is_controller else broker.node_id,
        brokers=nodes,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_view.CLUSTER_OPERATIONS
    send(reply, response)


def _brokers(
    request: wire.Request, broker: QuorumContext, listener: str
) -> Iterator[wire.DescribeClusterBroker]:
    for node in broker.image.brokers.values():
        endpoint = node.endpoints.get(listener)
        if endpoint is not None and (request.include_fenced_brokers or not node.is_fenced):
            yield wire.DescribeClusterBroker(
                node.id, endpoint.host, endpoint.port, node.rack, node.is_fenced
            )


def _controllers(broker: QuorumContext) -> Iterator[wire.DescribeClusterBroker]:
    for node in broker.image.controllers.values():
        for endpoint in list(node.endpoints.values())[:1]:
            yield wire.DescribeClusterBroker(node.id, endpoint.host, endpoint.port)


def _mismatch(ours: int, wanted: int, version: int) -> wire.Response:
    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if version else ErrorCode.INVALID_REQUEST
    if wanted not in NAMES:
        return wire.Response(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE if version else code,
            error_message=f"Unsupported endpoint type {wanted}",
        )
    return wire.Response(
        error_code=code,
        error_message=f"The request was sent to an endpoint of type {NAMES[ours]}, "
        f"but we wanted an endpoint of type {NAMES[wanted]}",
    )
