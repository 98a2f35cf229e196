"""Implementation of `ottla brokers` drain, undrain and unregister, with progress."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from ottla.cli.views.broker_view import BrokerSeen, look_at_brokers
from ottla.cli.views.progress import Bar
from ottla.cli.views.terminal import note, plural, say, show_json
from ottla.client.admin import Admin
from ottla.client.brokers import Brokers
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model.types import NodeId

LOOK_AGAIN_SECONDS = 0.5
# The controller rebalances every ottla.rebalance.interval.ms; after this time without a move it has
# none.
STUCK_SECONDS = 45.0


class NotPossible(ClientError):
    """The state of the cluster forbids it; the sentence says why."""


class Left(NamedTuple):
    replicas: int
    moving: int


async def drain_broker(cluster: Cluster, node: int, *, wait: bool, as_json: bool) -> None:
    brokers = await _brokers(cluster)
    _known(brokers, node)
    others = [b for b in brokers if b.id != node and b.state == "running"]
    stays = await _without_place(cluster, node, len(others))
    await Brokers(cluster).set_drained(NodeId(node), True)
    left = await _left(cluster, node)
    if stays:
        note(
            f"ottla: {plural(stays, 'partition')} of broker {node} have as many replicas as there "
            f"are other brokers to take them ({len(others)}): they stay until one is added"
        )
    if wait:
        left = await _wait(cluster, node, left, stays)
    if as_json:
        show_json({"broker": node, "drained": True, "replicas": left.replicas})
    elif left.replicas:
        say(f"Broker {node} is being drained: {plural(left.replicas, 'replica')} left.")
    else:
        say(f"Broker {node} is drained: nothing is left on it.")
    if wait and left.replicas:
        raise NotPossible(f"{plural(left.replicas, 'replica')} cannot leave broker {node}")


async def undrain_broker(cluster: Cluster, node: int, *, as_json: bool) -> None:
    _known(await _brokers(cluster), node)
    await Brokers(cluster).set_drained(NodeId(node), False)
    if as_json:
        show_json({"broker": node, "drained": False})
    else:
        say(f"Broker {node} may have replicas again.")


async def unregister_broker(cluster: Cluster, node: int, *, force: bool, as_json: bool) -> None:
    broker = _known(await _brokers(cluster), node)
    if not broker.is_fenced:
        raise NotPossible(f"broker {node} is running: stop it first, or it registers again")
    if broker.replicas and not force:
        raise NotPossible(
            f"{plural(broker.replicas, 'partition')} have a replica on broker {node}: "
            f"'ottla brokers drain {node} --wait' first, or --force"
        )
    await Brokers(cluster).unregister(NodeId(node))
    if as_json:
        show_json({"broker": node, "unregistered": True})
    else:
        say(f"Broker {node} is forgotten.")


async def _brokers(cluster: Cluster) -> list[BrokerSeen]:
    admin = Admin(cluster)
    described = await admin.describe_cluster()
    return await look_at_brokers(cluster, described, await admin.describe_topics())


def _known(brokers: Sequence[BrokerSeen], node: int) -> BrokerSeen:
    for broker in brokers:
        if broker.id == node:
            return broker
    ids = ", ".join(str(broker.id) for broker in brokers)
    raise NotPossible(f"there is no broker {node}: those registered are {ids}")


async def _without_place(cluster: Cluster, node: int, others: int) -> int:
    """Number of partitions that cannot move: every other broker has a replica already.

    Read before more moves start: a moving partition has its new replicas beside the old ones.
    """
    moving = {(move.topic, move.partition) for move in await Brokers(cluster).moves()}
    return sum(
        node in partition.replica_nodes
        and len(partition.replica_nodes) > others
        and (topic.name, partition.partition_index) not in moving
        for topic in await Admin(cluster).describe_topics()
        for partition in topic.partitions
    )


async def _left(cluster: Cluster, node: int) -> Left:
    topics = await Admin(cluster).describe_topics()
    moves = await Brokers(cluster).moves()
    return Left(
        sum(node in item.replica_nodes for topic in topics for item in topic.partitions),
        sum(node in move.removing for move in moves),
    )


async def _wait(cluster: Cluster, node: int, left: Left, stays: int) -> Left:
    """Wait until only replicas without another place are left, or progress stops."""
    now = cluster.clock.monotonic
    before, changed_at = left, now()
    total = left.replicas
    with Bar(f"Draining broker {node}", total) as bar:
        while left.replicas > stays:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            left = await _left(cluster, node)
            done = max(0, total - left.replicas)
            bar.seen(done, f"replicas moved, {left.moving} on their way")
            if left != before or left.moving:
                before, changed_at = left, now()
            elif now() - changed_at > STUCK_SECONDS * 1000:
                break
    return left
