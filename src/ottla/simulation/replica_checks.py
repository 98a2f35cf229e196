"""Whether a cluster is well: every replica there, in sync, and byte for byte the same."""

import hashlib
from collections.abc import Collection

from ottla.broker.server import Broker
from ottla.metadata.cluster import Partition
from ottla.model.types import NodeId, Offset, TopicPartition
from ottla.simulation.history import Violation
from ottla.simulation.nodes import Nodes
from ottla.simulation.replica_invariants import batches_of
from ottla.storage.log import Log


def newest(nodes: Nodes) -> Broker | None:
    """Who knows most of what is committed of the metadata log."""
    serving = [broker for _, broker in nodes.serving()]
    return max(serving, key=lambda broker: broker.image.offset, default=None)


def partitions_of(broker: Broker) -> dict[TopicPartition, Partition]:
    return {
        TopicPartition(topic.name, index): partition
        for topic in broker.image.topics_by_name.values()
        for index, partition in topic.partitions.items()
    }


def keepers(nodes: Nodes) -> list[set[NodeId]]:
    """For each partition, those of its replicas that hold all that is committed."""
    broker = newest(nodes)
    if broker is None:
        return [set()]
    return [{*one.isr, *one.elr} for one in partitions_of(broker).values()]


def unhealthy(nodes: Nodes) -> list[str]:
    """What is not as it should be when nothing is broken any more."""
    serving = nodes.serving()
    down = sorted(set(nodes.machines) - {number for number, _ in serving})
    if down:
        return [f"node {number} does not serve" for number in down]
    if not any(broker.quorum.is_leader for _, broker in serving):
        return ["there is no active controller"]
    broker = newest(nodes)
    assert broker is not None, "all serve"
    ills = [
        f"node {number} is at {other.image.offset} of the metadata log, not {broker.image.offset}"
        for number, other in serving
        if other.image.offset != broker.image.offset
    ]
    ills += [f"node {one.id} is fenced" for one in broker.image.brokers.values() if one.is_fenced]
    for place, one in sorted(partitions_of(broker).items()):
        if sorted(one.isr) != sorted(one.replicas) or one.leader < 0:
            ills.append(f"{place}: leader {one.leader}, isr {one.isr} of {one.replicas}")
        elif one.adding or one.removing:
            ills.append(f"{place} is still being reassigned")
    return ills


def check_alike(nodes: Nodes) -> list[str]:
    """Which replicas still lag; a Violation if they are as long as others and not the same."""
    brokers = dict(nodes.serving())
    broker = newest(nodes)
    if broker is None:
        return ["nobody serves"]
    hosted = {n: {one.name: one for one in b.partitions.all()} for n, b in brokers.items()}
    lagging = []
    for place, one in sorted(partitions_of(broker).items()):
        logs: dict[NodeId, Log] = {}
        for number in one.replicas:
            if number in brokers and place in hosted[number]:
                logs[number] = hosted[number][place].log
        ends = {number: log.end_offset for number, log in logs.items()}
        if len(logs) < len(one.replicas) or len(set(ends.values())) > 1:
            lagging.append(f"{place} ends at {ends} on its replicas {one.replicas}")
        elif len(digests(logs.values())) > 1:
            raise Violation(f"I4: the replicas of {place} are not alike: {one.replicas}")
    return lagging


def digests(logs: Collection[Log]) -> set[str]:
    """Of what all of them have: each lets go of deleted records in its own time."""
    start = max(log.log_start_offset for log in logs)
    return {_digest(log, start) for log in logs}


def _digest(log: Log, start: Offset) -> str:
    digest = hashlib.sha256()
    for batch in batches_of(log, start, log.end_offset):
        digest.update(batch.data)
    return digest.hexdigest()
