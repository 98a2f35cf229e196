"""FindCoordinator (api key 10), versions 0 to 6: which broker looks after a group.

v1  key_type: groups (0), transactional ids (1)     v4  several keys in one request
v6  key type 2 for share groups

The topic that keeps groups is made when the first group is looked for; its creation is part of
the asking, so that the answer is a broker and not an error to retry.
"""

from ottla.broker.coordinators.group_requests import GroupContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.groups.placement import OFFSETS_TOPIC
from ottla.model.errors import ErrorCode
from ottla.protocol.messages import find_coordinator as wire

GROUP, TRANSACTION = 0, 1
KEYS_SINCE = 4


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    if request.key_type == GROUP and OFFSETS_TOPIC not in broker.image.topics_by_name:
        broker.groups.create_topic(lambda: _answer(request, reply, broker))
    else:
        _answer(request, reply, broker)


def _answer(request: wire.Request, reply: Reply, broker: GroupContext) -> None:
    listener = reply.connection.listener
    if reply.version >= KEYS_SINCE:
        found = [_find(key, request.key_type, listener, broker) for key in request.coordinator_keys]
        send(reply, wire.Response(coordinators=found))
        return
    one = _find(request.key, request.key_type, listener, broker)
    response = wire.Response(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )
    send(reply, response)


def _find(key: str, key_type: int, listener: str, broker: GroupContext) -> wire.Coordinator:
    if key_type == TRANSACTION:
        # A clear end: what says "try again" would be tried for ever.
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return _refused(key, code, "Transactions are not served yet.")
    if key_type != GROUP:
        return _refused(key, ErrorCode.INVALID_REQUEST, f"No coordinator has type {key_type}.")
    topic = broker.image.topics_by_name.get(OFFSETS_TOPIC)
    if topic is not None:
        partition = topic.partitions[broker.groups.partition_of(key)]
        node = broker.image.brokers.get(partition.leader)
        endpoint = node.endpoints.get(listener) if node is not None else None
        if node is not None and endpoint is not None and not node.is_fenced:
            return wire.Coordinator(key, node.id, endpoint.host, endpoint.port, error_message="")
    return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")


def _refused(key: str, code: ErrorCode, message: str) -> wire.Coordinator:
    return wire.Coordinator(key, -1, "", -1, code, message)
