"""Whether a cluster is well: every replica there, in sync, and byte for byte the same."""

from ottla.broker.node import inspection
from ottla.broker.node.broker import Broker
from ottla.broker.node.inspection import PartitionView
from ottla.metadata.image.cluster import Partition
from ottla.model.types import Offset, TopicPartition
from ottla.records.record import read_records
from ottla.simulation.history.history import Violation
from ottla.simulation.invariants.replica_invariants import COMPACTED
from ottla.simulation.world.nodes import Nodes

RECORD_BYTES_MAX = 1 << 26


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


def unhealthy(nodes: Nodes) -> list[str]:
    """What is not as it should be when nothing is broken any more."""
    serving = nodes.serving()
    down = sorted(set(nodes.machines) - {number for number, _ in serving})
    if down:
        return [f"node {number} does not serve" for number in down]
    views = [inspection.quorum(broker) for _, broker in serving]
    if not any(view is not None and view.is_active_controller for view in views):
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
    hosted = {n: {one.name: one for one in inspection.partitions(b)} for n, b in brokers.items()}
    lagging = []
    for place, one in sorted(partitions_of(broker).items()):
        replicas = {n: hosted[n][place] for n in one.replicas if place in hosted.get(n, ())}
        ends = {number: view.end_offset for number, view in replicas.items()}
        if len(replicas) < len(one.replicas) or len(set(ends.values())) > 1:
            lagging.append(f"{place} ends at {ends} on its replicas {one.replicas}")
        elif not _are_alike(list(replicas.values())):
            raise Violation(f"I4: the replicas of {place} are not alike: {one.replicas}")
    return lagging


def _are_alike(replicas: list[PartitionView]) -> bool:
    """Of what all of them have: each deletes old records, and cleans its log, in its own time."""
    content = _kept if replicas[0].name.topic.startswith(COMPACTED) else _bytes
    start = max(view.log_start_offset for view in replicas)
    first, *others = [content(view, start) for view in replicas]
    return all(other == first for other in others)


def _bytes(view: PartitionView, start: Offset) -> list[bytes]:
    return [bytes(batch.data) for batch in view.batches(start, view.end_offset)]


def _kept(view: PartitionView, start: Offset) -> dict[bytes, bytes]:
    """The last value of each key of a compacted log."""
    latest: dict[bytes, bytes | None] = {}
    for batch in view.batches(start, view.end_offset):
        for record in () if batch.is_control else read_records(batch, RECORD_BYTES_MAX):
            latest[record.key or b""] = record.value
    return {key: value for key, value in latest.items() if value is not None}
