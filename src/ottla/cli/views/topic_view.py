"""Output of `ottla topics describe`: a topic's partitions with their offsets, and its configs."""

from ottla.cli.views.terminal import plural, say, show_json, show_table
from ottla.client.admin import Admin, ResourceType
from ottla.client.brokers import Brokers, Move
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.offsets import EARLIEST, LATEST, FoundOffset, find_offsets
from ottla.model.types import TopicPartition, uuid_text
from ottla.protocol.messages.metadata import MetadataResponseTopic

TOPIC_SOURCE = 1  # A config set on the topic itself.
UNKNOWN = FoundOffset(-1, -1)
Found = dict[TopicPartition, FoundOffset]


async def describe_topics(cluster: Cluster, names: list[str], *, as_json: bool) -> None:
    admin = Admin(cluster)
    answers: list[object] = []
    moves = await _moves(cluster)
    for number, topic in enumerate(await admin.describe_topics(names)):
        configs = await admin.describe_configs(ResourceType.TOPIC, topic.name or "")
        own = {item.name: item.value for item in configs if item.config_source == TOPIC_SOURCE}
        starts, ends = (
            await _offsets(cluster, topic, EARLIEST),
            await _offsets(cluster, topic, LATEST),
        )
        rows = _rows(topic, starts, ends, moves)
        if as_json:
            answers.append(_as_json(topic, own, rows))
        else:
            if number:
                say("")
            _show(topic, own, rows)
    if as_json:
        show_json(answers)


async def _offsets(cluster: Cluster, topic: MetadataResponseTopic, time_ms: int) -> Found:
    """The offsets of the partitions that have a leader."""
    wanted = {
        TopicPartition(topic.name or "", item.partition_index): time_ms
        for item in topic.partitions
        if item.leader_id >= 0
    }
    try:
        return await find_offsets(cluster, wanted)
    except ClientError:
        return {}  # A partition may lose its leader at any time; show the rest.


async def _moves(cluster: Cluster) -> dict[TopicPartition, Move]:
    try:
        moves = await Brokers(cluster).moves()
    except ClientError:
        return {}  # An old broker does not support it.
    return {TopicPartition(move.topic, move.partition): move for move in moves}


def _rows(
    topic: MetadataResponseTopic,
    starts: Found,
    ends: Found,
    moves: dict[TopicPartition, Move],
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for item in sorted(topic.partitions, key=lambda item: item.partition_index):
        place = TopicPartition(topic.name or "", item.partition_index)
        move = moves.get(place)
        rows.append(
            {
                "partition": item.partition_index,
                "leader": item.leader_id,
                "leader_epoch": item.leader_epoch,
                "replicas": item.replica_nodes,
                "isr": item.isr_nodes,
                "offline": item.offline_replicas,
                "under_replicated": len(item.isr_nodes) < len(item.replica_nodes),
                "adding": move.adding if move else [],
                "removing": move.removing if move else [],
                "start_offset": starts.get(place, UNKNOWN).offset,
                "end_offset": ends.get(place, UNKNOWN).offset,
            }
        )
    return rows


def _show(
    topic: MetadataResponseTopic, own: dict[str, str | None], rows: list[dict[str, object]]
) -> None:
    say(f"Topic {topic.name}, id {uuid_text(topic.topic_id)}, {plural(len(rows), 'partition')}")
    show_table(
        [
            *("Partition>", "Leader>", "Epoch>", "Replicas", "In sync"),
            *("Start offset>", "End offset>", "State"),
        ],
        [
            [
                row["partition"],
                "none" if row["leader"] == -1 else row["leader"],
                row["leader_epoch"],
                _join(row["replicas"]),
                _join(row["isr"]),
                row["start_offset"],
                row["end_offset"],
                _state(row),
            ]
            for row in rows
        ],
    )
    if own:
        say("")
        show_table(["Config set on the topic", "Value"], sorted(own.items()))


def _state(row: dict[str, object]) -> str:
    """Problems of a partition; empty if there are none."""
    parts = []
    if row["leader"] == -1:
        parts.append("offline")
    elif row["under_replicated"]:
        parts.append("under-replicated")
    if row["adding"]:
        parts.append(f"adding {_join(row['adding'])}")
    if row["removing"]:
        parts.append(f"removing {_join(row['removing'])}")
    if row["offline"]:
        parts.append(f"not served by {_join(row['offline'])}")
    return "; ".join(parts)


def _as_json(
    topic: MetadataResponseTopic, own: dict[str, str | None], rows: list[dict[str, object]]
) -> dict[str, object]:
    return {
        "topic": topic.name,
        "id": uuid_text(topic.topic_id),
        "internal": topic.is_internal,
        "configs": own,
        "partitions": rows,
    }


def _join(nodes: object) -> str:
    assert isinstance(nodes, list), "a list of brokers"
    return ", ".join(str(node) for node in nodes)
