"""Metadata (api key 3), versions 0 to 13: brokers, topics, and who leads which partition.

v0   an empty list asks for all topics, later null does; replicas that are down are left out
v4   auto-creation may be declined       v6   a leader without the listener: LISTENER_NOT_FOUND
v8   what the caller may do, if asked    v12  topics by id

Better than Kafka, which answers UNKNOWN_TOPIC_OR_PARTITION until the client asks again: a topic
that is created by the asking is in the answer, and can be written to. Nor is anyone told of a
leader whose connection has just closed, until it is known whether it lives (`PeerLiveness`).

The answer is as long as what exists, however short the request is: see `responses.respond`.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from ottla.broker.handlers.context import MetadataContext
from ottla.broker.wire import cluster_view
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import Lazy, respond
from ottla.metadata.image.cluster import INTERNAL_TOPICS, NO_LEADER, Endpoint, Partition, Topic
from ottla.metadata.image.cluster import Broker as Registration
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.topic_names import fault_of
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import ZERO_UUID, NodeId, Uuid
from ottla.protocol.messages import create_topics
from ottla.protocol.messages import metadata as wire

IDS_SINCE = 12
LISTENER_NOT_FOUND_SINCE = 6
CREATE_TIMEOUT_MS = 30_000
FEW_NAMED = 500  # Topics that a request names, and has paid for with its length.


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: MetadataContext) -> None:
    _check(request, reply.version)
    missing = _to_create(request, reply.version, broker)
    if missing:
        broker.spawn(_create(missing, reply, broker, lambda: _answer(request, reply, broker)))
    elif broker.peer_liveness.doubted:
        leaders = {p.leader for t in _topics(request, reply, broker) for p in t.partitions.values()}
        broker.peer_liveness.hold(leaders, lambda: _answer(request, reply, broker))
    else:
        _answer(request, reply, broker)


def _topics(request: wire.Request, reply: Reply, broker: MetadataContext) -> list[Topic]:
    """Those that are asked for and are there."""
    image, ids = broker.image, _ids(request)
    if _is_for_all(request, reply.version):
        return list(image.topics_by_name.values())
    if ids:
        return [image.topics_by_id[one] for one in ids if one in image.topics_by_id]
    return [image.topics_by_name[n] for n in _names(request) if n in image.topics_by_name]


def _check(request: wire.Request, version: int) -> None:
    for topic in request.topics or ():
        if topic.name is None and topic.topic_id == ZERO_UUID:
            message = f"Topic name can not be null for version {version}"
            raise Refusal(ErrorCode.INVALID_REQUEST, message)
        if version < IDS_SINCE and topic.topic_id != ZERO_UUID:
            message = f"Topic IDs are not supported in requests for version {version}"
            raise Refusal(ErrorCode.INVALID_REQUEST, message)


def _is_for_all(request: wire.Request, version: int) -> bool:
    return request.topics is None or (version == 0 and not request.topics)


def _ids(request: wire.Request) -> list[Uuid]:
    """If any topic is asked for by id, names do not count."""
    ids = [topic.topic_id for topic in request.topics or ()]
    return list(dict.fromkeys(topic_id for topic_id in ids if topic_id != ZERO_UUID))


def _names(request: wire.Request) -> list[str]:
    return list(dict.fromkeys(t.name for t in request.topics or () if t.name is not None))


def _to_create(request: wire.Request, version: int, broker: MetadataContext) -> list[str]:
    if not request.allow_auto_topic_creation or not broker.settings.auto_create_topics_enable:
        return []
    if _is_for_all(request, version) or _ids(request):
        return []
    return [
        name
        for name in _names(request)
        if name not in broker.image.topics_by_name
        and fault_of(name) is None
        and name not in INTERNAL_TOPICS
    ]


async def _create(
    names: list[str], reply: Reply, broker: MetadataContext, then: Callable[[], None]
) -> None:
    """Whatever becomes of it, the image tells: a topic that failed is answered as unknown."""
    topics = [
        create_topics.CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
        for name in names
    ]
    wanted = create_topics.Request(topics=topics, timeout_ms=CREATE_TIMEOUT_MS)
    with suppress(Refusal):
        await broker.submit(wanted, reply.origin)
    broker.partitions.hosting.when_hosted(then)


class _View(NamedTuple):
    """What all topics of an answer are seen by."""

    image: ClusterImage
    listener: str
    version: int
    operations: int


def _answer(request: wire.Request, reply: Reply, broker: MetadataContext) -> None:
    topics = _topics(request, reply, broker)
    elements = sum(len(topic.partitions) for topic in topics)
    if _is_for_all(request, reply.version):
        elements += len(topics)
    elif len(request.topics or ()) > FEW_NAMED:
        elements += len(request.topics or ())
    respond(reply, lambda: _response(request, reply, broker), elements, broker)


def _response(request: wire.Request, reply: Reply, broker: MetadataContext) -> wire.Response:
    image, listener = broker.image, reply.connection.listener
    is_for_operations = request.include_topic_authorized_operations
    operations = cluster_view.TOPIC_OPERATIONS if is_for_operations else cluster_view.NOT_ASKED
    view = _View(image, listener, reply.version, operations)
    topics: Any
    if _is_for_all(request, reply.version):
        topics = Lazy(list(image.topics_by_name.values()), partial(_topic, view))
    elif ids := _ids(request):
        topics = Lazy(ids, partial(_by_id, view))
    else:
        topics = Lazy(_names(request), partial(_by_name, view))
    response = wire.Response(
        brokers=[
            wire.MetadataResponseBroker(node.id, endpoint.host, endpoint.port, node.rack)
            for node, endpoint in _listed(broker, listener)
        ],
        cluster_id=image.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_view.CLUSTER_OPERATIONS
    return response


def _listed(broker: MetadataContext, listener: str) -> Iterator[tuple[Registration, Endpoint]]:
    yield from cluster_view.alive_brokers(broker.image, listener)
    for node in broker.peer_liveness.departed():
        if listener in node.endpoints:
            yield node, node.endpoints[listener]


def _by_id(view: _View, topic_id: Uuid) -> wire.MetadataResponseTopic:
    topic = view.image.topics_by_id.get(topic_id)
    if topic is not None:
        return _topic(view, topic)
    return wire.MetadataResponseTopic(
        ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id, topic_authorized_operations=view.operations
    )


def _by_name(view: _View, name: str) -> wire.MetadataResponseTopic:
    topic = view.image.topics_by_name.get(name)
    if topic is not None:
        return _topic(view, topic)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if fault_of(name):
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return wire.MetadataResponseTopic(
        code,
        name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=view.operations,
    )


def _topic(view: _View, topic: Topic) -> wire.MetadataResponseTopic:
    # A copy: while the answer is encoded, step by step, partitions may come.
    partitions: Any = Lazy(list(topic.partitions.items()), partial(_partition, view))
    return wire.MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=view.operations,
    )


def _partition(view: _View, known: tuple[int, Partition]) -> wire.MetadataResponsePartition:
    image, listener, version, _ = view
    index, partition = known
    replicas, isr = list(partition.replicas), list(partition.isr)
    if version == 0:
        replicas = [node for node in replicas if cluster_view.is_alive(image, node, listener)]
        isr = [node for node in isr if cluster_view.is_alive(image, node, listener)]
    leader, code = partition.leader, ErrorCode.NONE
    if not cluster_view.is_alive(image, leader, listener):
        code = _leaderless(image, leader, version)
        leader = NO_LEADER
    elif len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr):
        code = ErrorCode.REPLICA_NOT_AVAILABLE
    return wire.MetadataResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(map(int, replicas)),
        isr_nodes=list(map(int, isr)),
        offline_replicas=cluster_view.offline_replicas(image, partition, listener),
    )


def _leaderless(image: ClusterImage, leader: NodeId, version: int) -> ErrorCode:
    if leader in image.brokers and version >= LISTENER_NOT_FOUND_SINCE:
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE
