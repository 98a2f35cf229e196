"""Broker registration, heartbeats, fencing, controlled shutdown, unregistration.

A registration belongs to one incarnation; its broker epoch is the offset of its record, and every
later request of that broker must name it.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ottla.metadata.decisions import leaderships
from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.metadata.decisions.elections import NotContactedYet
from ottla.metadata.decisions.sessions import Sessions
from ottla.metadata.image.cluster import Broker, Endpoint, VersionRange
from ottla.metadata.image.features import (
    METADATA_VERSION,
    SUPPORTED,
    has_cordoned_directories,
    has_directories,
)
from ottla.metadata.image.image import ClusterImage
from ottla.metadata.image.snapshot import broker_record
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Monotonic, NodeId, Offset, Uuid
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import broker_heartbeat, broker_registration, unregister_broker

_RESERVED_DIRECTORY_MAX = 100
FENCE, UNFENCE = 1, -1


@dataclass(frozen=True, slots=True)
class Died:
    """Internal command: the process of this incarnation is known to be gone."""

    broker_id: NodeId
    broker_epoch: Offset


def check_epoch(image: ClusterImage, broker_id: int, epoch: int) -> Broker:
    broker = image.brokers.get(NodeId(broker_id))
    if broker is None:
        raise Refusal(
            ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
        )
    if broker.epoch != epoch:
        raise Refusal(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
        )
    return broker


def register(
    context: DecisionContext,
    sessions: Sessions,
    request: broker_registration.Request,
    next_offset: Offset,
    now: Monotonic,
) -> Outcome:
    image = context.image
    node = NodeId(request.broker_id)
    before = image.brokers.get(node)
    _check_registration(image, sessions, request, before, now)
    broker = _broker(image, request, next_offset)
    written: list[Any] = []
    if before is not None and before.incarnation_id == request.incarnation_id:
        # The same incarnation registers again with new data: its state does not change.
        broker = replace(
            broker,
            epoch=before.epoch,
            is_fenced=before.is_fenced,
            in_controlled_shutdown=before.in_controlled_shutdown,
        )
    else:
        written += _restarted(context, sessions, request, before)
        sessions.forget(node)
    written.append(broker_record(broker, image.metadata_version))
    sessions.touch(node, now)
    return Outcome(written, broker_registration.Response(broker_epoch=broker.epoch))


def _restarted(
    context: DecisionContext,
    sessions: Sessions,
    request: broker_registration.Request,
    before: Broker | None,
) -> list[Any]:
    """A new incarnation leaves every ISR until it has fetched.

    If it names its predecessor's epoch, it holds all acknowledged records. Otherwise, or if the
    cluster does not know the predecessor, it may have lost some.
    """
    node = NodeId(request.broker_id)
    if before is None or before.epoch != request.previous_broker_epoch:
        return list(leaderships.lose(context, node))
    sessions.proved_intact(
        node
    )  # Even if refused: other restarting brokers may leave an ISR to it.
    try:
        return list(leaderships.leave(context, node))
    except NotContactedYet as refusal:
        code = ErrorCode.DUPLICATE_BROKER_REGISTRATION  # Brokers retry after this error.
        raise Refusal(code, refusal.message) from refusal


def _check_registration(
    image: ClusterImage,
    sessions: Sessions,
    request: broker_registration.Request,
    before: Broker | None,
    now: Monotonic,
) -> None:
    if request.cluster_id != image.cluster_id:
        raise Refusal(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {image.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    if (
        before is not None
        and before.incarnation_id != request.incarnation_id
        # Only the directory holds that epoch, and one process at a time locks it: the predecessor
        # is dead.
        and before.epoch != request.previous_broker_epoch
        and sessions.may_live(before.id, now)
    ):
        sessions.doubt(before.id)
        raise Refusal(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently "
            "restarted this should self-resolve once the heartbeat manager expires the "
            "broker's session.",
        )
    if has_directories(image.metadata_version):
        _check_directories(image, request)
    for name, level in image.features.items():
        if name in SUPPORTED:
            _check_feature(name, level, request)


def _check_directories(image: ClusterImage, request: broker_registration.Request) -> None:
    directories = request.log_dirs
    if not directories:
        raise _invalid("No directories specified in request")
    if any(int.from_bytes(directory) < _RESERVED_DIRECTORY_MAX for directory in directories):
        raise _invalid("Reserved directory ID in request")
    if len(set(directories)) < len(directories):
        raise _invalid("Duplicate directory ID in request")
    for other in image.brokers.values():
        if other.id != request.broker_id and not set(directories).isdisjoint(other.directories):
            raise _invalid(f"Broker {other.id} is already registered with a directory of these")


def _check_feature(name: str, level: int, request: broker_registration.Request) -> None:
    low, high = 0, 0
    for feature in request.features:
        if feature.name == name:
            low, high = feature.min_supported_version, feature.max_supported_version
    if not low <= level <= high:
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION,
            f"Unable to register because the broker does not support finalized version {level} "
            f"of {name}. The broker wants a version between {low} and {high}, inclusive.",
        )


def _broker(
    image: ClusterImage, request: broker_registration.Request, next_offset: Offset
) -> Broker:
    if all(feature.name != METADATA_VERSION for feature in request.features):
        raise _invalid("Request features do not contain 'metadata.version'")
    return Broker(
        id=NodeId(request.broker_id),
        epoch=next_offset,
        incarnation_id=request.incarnation_id,
        endpoints={
            e.name: Endpoint(e.host, e.port, e.security_protocol) for e in request.listeners
        },
        features={
            f.name: VersionRange(f.min_supported_version, f.max_supported_version)
            for f in request.features
        },
        rack=request.rack,
        directories=tuple(request.log_dirs),
        cordoned_directories=() if has_cordoned_directories(image.metadata_version) else None,
    )


def heartbeat(
    context: DecisionContext,
    sessions: Sessions,
    request: broker_heartbeat.Request,
    now: Monotonic,
) -> Outcome:
    broker = check_epoch(context.image, request.broker_id, request.broker_epoch)
    is_caught_up = request.current_metadata_offset >= broker.registered_at
    sessions.touch(broker.id, now)
    sessions.read_to(broker.id, request.current_metadata_offset)
    written: list[Any] = []
    after = broker
    if broker.is_fenced:
        is_wanted = not (request.want_shut_down or request.want_fence)
        if is_wanted and is_caught_up and not broker.in_controlled_shutdown:
            written, after = unfence(context, broker), replace(broker, is_fenced=False)
    elif request.want_fence or request.want_shut_down or broker.in_controlled_shutdown:
        with suppress(NotContactedYet):  # It retries.
            written, after = _leave(context, sessions, request, broker)
    offline = set(request.offline_log_dirs).intersection(broker.directories)
    if offline and has_directories(context.image.metadata_version):
        with suppress(NotContactedYet):  # Each heartbeat repeats them.
            written += _lose_directories(context, broker, offline)
    response = broker_heartbeat.Response(
        is_caught_up=is_caught_up,
        is_fenced=after.is_fenced,
        should_shut_down=request.want_shut_down and after.is_fenced,
    )
    return Outcome(written, response)


def _leave(
    context: DecisionContext, sessions: Sessions, request: broker_heartbeat.Request, broker: Broker
) -> tuple[list[Any], Broker]:
    """Next step of a shutdown: its records, and the broker after them; raises NotContactedYet.

    A controlled shutdown is announced first. Other brokers respond to the announcement with a
    heartbeat, and an ISR is left only to brokers that did: one that lost power is not detected
    before its session ends.
    """
    if request.want_fence or not _is_needed(context, sessions, broker):
        return fence(context, broker), replace(broker, is_fenced=True)
    if not broker.in_controlled_shutdown:
        sessions.announced(broker.id, context.image.offset + 1)
        change = _change(broker, in_controlled_shutdown=1)
        return [change], replace(broker, in_controlled_shutdown=True)
    if not leaderships.is_needed(context, broker.id):
        return [], broker  # Not all others have read yet who leads instead.
    sessions.announced(broker.id, context.image.offset)  # Has an effect after a failover only.
    heard = replace(context, has_contacted=partial(sessions.has_read_announcement, broker.id))
    written: list[Any] = list(leaderships.leave(heard, broker.id))
    sessions.handed_over(broker.id, context.image.offset + len(written))
    return written, broker


def fence(context: DecisionContext, broker: Broker) -> list[Any]:
    changes: list[Any] = list(leaderships.leave(context, broker.id))
    return [*changes, _change(broker, fenced=FENCE)]


def expire(context: DecisionContext, nodes: Sequence[NodeId]) -> list[Any]:
    """Fence all brokers with expired sessions, in one decision."""
    found = [context.image.brokers[node] for node in nodes if node in context.image.brokers]
    expired = [broker for broker in found if not broker.is_fenced]
    changes = leaderships.expire(context, [broker.id for broker in expired]) if expired else []
    return [*changes, *(_change(broker, fenced=FENCE) for broker in expired)]


def unfence(context: DecisionContext, broker: Broker) -> list[Any]:
    return [_change(broker, fenced=UNFENCE), *leaderships.come_back(context, broker.id)]


def died(context: DecisionContext, sessions: Sessions, command: Died) -> Outcome:
    """Fence a broker whose process is known to be gone, without waiting for its session.

    Refused while the remaining ISR members have not contacted this controller: they may have lost
    power, and report that when they register (NotContactedYet).
    """
    broker = context.image.brokers.get(command.broker_id)
    if broker is None or broker.epoch != command.broker_epoch:
        return Outcome([], None)
    written = [] if broker.is_fenced else fence(context, broker)
    sessions.forget(broker.id)
    return Outcome(written, None)


def _is_needed(context: DecisionContext, sessions: Sessions, broker: Broker) -> bool:
    """True until its partitions are handed over, and all other brokers have read to whom."""
    if leaderships.is_needed(context, broker.id):
        return True
    others = [b.id for b in context.image.brokers.values() if b.is_active and b.id != broker.id]
    return not sessions.is_hand_over_known(broker.id, others)


def _lose_directories(context: DecisionContext, broker: Broker, offline: set[bytes]) -> list[Any]:
    remaining = [directory for directory in broker.directories if directory not in offline]
    changes: list[Any] = list(leaderships.leave_directories(context, broker.id, offline))
    return [*changes, _change(broker, log_dirs=remaining)]


def unregister(
    context: DecisionContext, sessions: Sessions, request: unregister_broker.Request
) -> Outcome:
    broker = context.image.brokers.get(NodeId(request.broker_id))
    if broker is None:
        raise Refusal(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    try:
        written: list[Any] = list(leaderships.forget(context, broker.id))
    except NotContactedYet as refusal:
        code = ErrorCode.REQUEST_TIMED_OUT  # Admin clients retry after this error.
        raise Refusal(code, refusal.message) from refusal
    sessions.forget(broker.id)
    written.append(records.UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
    return Outcome(written, unregister_broker.Response())


def _change(
    broker: Broker,
    *,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    log_dirs: Sequence[Uuid] = (),
) -> records.BrokerRegistrationChangeRecord:
    return records.BrokerRegistrationChangeRecord(
        broker_id=broker.id,
        broker_epoch=broker.epoch,
        fenced=fenced,
        in_controlled_shutdown=in_controlled_shutdown,
        log_dirs=list(log_dirs),
    )


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REGISTRATION, message)
