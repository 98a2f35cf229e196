"""Waits until partitions have moved, and shows how far their new replicas are."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ottla.cli.views.progress import Bar
from ottla.cli.views.terminal import bytes_text
from ottla.client.admin import Admin
from ottla.client.brokers import Brokers, Move
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.model.types import NodeId, TopicPartition

LOOK_AGAIN_SECONDS = 0.5

Sizes = dict[NodeId, dict[TopicPartition, int]]


class Copied(NamedTuple):
    """Bytes that new replicas have, of those that they need."""

    there: int
    needed: int

    def __str__(self) -> str:
        return f"{bytes_text(self.there)} of {bytes_text(self.needed)} copied"


async def wait_moved(cluster: Cluster, places: Sequence[TopicPartition]) -> None:
    """Return when none of these partitions moves any more."""
    wanted = set(places)
    with Bar("Moving", len(wanted)) as bar:
        while moves := [m for m in await Brokers(cluster).moves() if place_of(m) in wanted]:
            copied = total((await copied_by(cluster, moves)).values())
            bar.seen(len(wanted) - len(moves), f"partitions moved, {copied} of the others")
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        bar.seen(len(wanted), "partitions moved")


async def copied_by(cluster: Cluster, moves: Sequence[Move]) -> dict[TopicPartition, Copied]:
    """How much of each move is copied, by the sizes that the brokers report."""
    nodes = {NodeId(node) for move in moves for node in move.replicas}
    sizes = await _sizes(cluster, nodes)
    return {place_of(move): _copied(move, sizes) for move in moves}


def total(copied: Iterable[Copied]) -> Copied:
    items = list(copied)
    return Copied(sum(item.there for item in items), sum(item.needed for item in items))


def place_of(move: Move) -> TopicPartition:
    return TopicPartition(move.topic, move.partition)


def _copied(move: Move, sizes: Mapping[NodeId, Mapping[TopicPartition, int]]) -> Copied:
    held = {node: sizes.get(NodeId(node), {}).get(place_of(move), 0) for node in move.replicas}
    whole = max((held[node] for node in move.replicas if node not in move.adding), default=0)
    return Copied(sum(min(held[n], whole) for n in move.adding), whole * len(move.adding))


async def _sizes(cluster: Cluster, nodes: set[NodeId]) -> Sizes:
    """Bytes of each partition on the brokers that run; the others are left out."""
    await cluster.refresh()
    sizes: Sizes = {}
    for node in sorted(nodes & set(cluster.metadata.nodes)):
        try:
            directories = await Admin(cluster).log_dirs(node)
        except ClientError:
            continue  # It stopped meanwhile.
        sizes[node] = {
            TopicPartition(topic.name, item.partition_index): item.partition_size
            for directory in directories
            for topic in directory.topics
            for item in topic.partitions
            if not item.is_future_key
        }
    return sizes
