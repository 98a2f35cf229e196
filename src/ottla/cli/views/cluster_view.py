"""Output of `ottla cluster`. Parts that the cluster does not report are left out."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from ottla.cli.views.broker_view import BrokerSeen, look_at_brokers, show_brokers
from ottla.cli.views.terminal import bytes_text, plural, say, show_json, show_table
from ottla.client.admin import Admin
from ottla.client.brokers import Brokers, Move
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.protocol.messages.describe_cluster import Response
from ottla.protocol.messages.describe_quorum import ReplicaState, ResponsePartitionData
from ottla.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

ROWS_MAX = 20  # Of a long list: the first rows, and the number of the others.
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    described: Response
    brokers: list[BrokerSeen]
    topics: list[MetadataResponseTopic]
    quorum: ResponsePartitionData | None
    moves: list[Move]
    features: dict[str, int]
    now: int

    @property
    def controller(self) -> int:
        active = [broker.id for broker in self.brokers if broker.is_controller]
        if self.quorum is not None:
            return self.quorum.leader_id
        return active[0] if active else self.described.controller_id

    def partitions(self) -> Iterator[tuple[str, MetadataResponsePartition]]:
        for topic in self.topics:
            for item in sorted(topic.partitions, key=lambda item: item.partition_index):
                yield topic.name or "", item

    def under_replicated(self) -> list[dict[str, object]]:
        return [
            {
                "topic": topic,
                "partition": item.partition_index,
                "leader": item.leader_id,
                "replicas": item.replica_nodes,
                "isr": item.isr_nodes,
                "offline": item.offline_replicas,
            }
            for topic, item in self.partitions()
            if len(item.isr_nodes) < len(item.replica_nodes)
        ]


async def describe_cluster(cluster: Cluster, *, as_json: bool) -> None:
    seen = await look(cluster)
    if as_json:
        show_json(_as_json(seen))
    else:
        _show(seen)


async def look(cluster: Cluster) -> ClusterSeen:
    admin = Admin(cluster)
    described = await admin.describe_cluster()
    topics = await admin.describe_topics()
    features = (await admin.features()).finalized_features
    return ClusterSeen(
        described,
        await look_at_brokers(cluster, described, topics),
        topics,
        await _quorum(admin),
        await _moves(cluster),
        {item.name: item.max_version_level for item in sorted(features, key=lambda f: f.name)},
        cluster.clock.wall(),
    )


async def _quorum(admin: Admin) -> ResponsePartitionData | None:
    try:
        return await admin.quorum()
    except ClientError:
        return None


async def _moves(cluster: Cluster) -> list[Move]:
    try:
        return await Brokers(cluster).moves()
    except ClientError:
        return []


def _as_json(seen: ClusterSeen) -> dict[str, object]:
    return {
        "cluster_id": seen.described.cluster_id,
        "controller": seen.controller,
        "quorum": None if seen.quorum is None else _quorum_json(seen.quorum, seen.now),
        "brokers": [broker.as_json() for broker in seen.brokers],
        "features": seen.features,
        "topics": sum(not topic.is_internal for topic in seen.topics),
        "internal_topics": sum(topic.is_internal for topic in seen.topics),
        "partitions": sum(1 for _ in seen.partitions()),
        "partitions_without_leader": sum(item.leader_id < 0 for _, item in seen.partitions()),
        "partitions_under_replicated": len(seen.under_replicated()),
        "under_replicated": seen.under_replicated(),
        "reassignments": [asdict(move) for move in seen.moves],
    }


def _quorum_json(quorum: ResponsePartitionData, now: int) -> dict[str, object]:
    return {
        "leader": quorum.leader_id,
        "epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": [_replica_json(quorum, item, now) for item in quorum.current_voters],
        "observers": [_replica_json(quorum, item, now) for item in quorum.observers],
    }


def _replica_json(quorum: ResponsePartitionData, item: ReplicaState, now: int) -> dict[str, object]:
    leader = [r.log_end_offset for r in quorum.current_voters if r.replica_id == quorum.leader_id]
    end = leader[0] if leader else quorum.high_watermark
    moment = item.last_caught_up_timestamp
    return {
        "id": item.replica_id,
        "log_end_offset": item.log_end_offset,
        "lag": max(0, end - item.log_end_offset) if item.log_end_offset >= 0 else None,
        "caught_up_ms_ago": max(0, now - moment) if moment >= 0 else None,
    }


def _show(seen: ClusterSeen) -> None:
    view = _as_json(seen)
    say(f"Cluster {seen.described.cluster_id}, controller {seen.controller}")
    say(
        f"Topics: {view['topics']}, and {view['internal_topics']} internal; "
        f"partitions: {view['partitions']}, {view['partitions_without_leader']} without a leader, "
        f"{view['partitions_under_replicated']} under-replicated, {len(seen.moves)} on the move"
    )
    say("")
    show_brokers(seen.brokers)
    _show_disks(seen)
    if seen.quorum is not None:
        _show_quorum(seen.quorum, seen.now)
    _show_under_replicated(seen)
    _show_moves(seen.moves)
    say("")
    show_table(["Feature", "Level>"], list(seen.features.items()))


def _show_disks(seen: ClusterSeen) -> None:
    rows: list[list[object]] = []
    for broker in seen.brokers:
        if broker.trouble:
            rows.append([broker.id, "?", broker.trouble, "", "", ""])
        rows += [
            [
                broker.id,
                item["path"],
                item["state"],
                item["partitions"],
                _bytes(item["bytes"]),
                _bytes(item["free_bytes"]),
            ]
            for item in broker.log_dirs
        ]
    say("")
    show_table(["Broker>", "Log directory", "State", "Partitions>", "Used>", "Free>"], rows)


def _show_quorum(quorum: ResponsePartitionData, now: int) -> None:
    rows: list[list[object]] = []
    for role, replicas in (("voter", quorum.current_voters), ("observer", quorum.observers)):
        for item in sorted(replicas, key=lambda item: item.replica_id):
            view = _replica_json(quorum, item, now)
            is_leader = item.replica_id == quorum.leader_id
            ago = 0 if is_leader else view["caught_up_ms_ago"]
            rows.append(
                [
                    item.replica_id,
                    "leader" if is_leader else role,
                    item.log_end_offset,
                    "" if view["lag"] is None else view["lag"],
                    "" if not isinstance(ago, int) else f"{ago / 1000:.1f} s ago",
                ]
            )
    say("")
    say(f"Quorum: epoch {quorum.leader_epoch}, high watermark {quorum.high_watermark}")
    show_table(["Node>", "Role", "Log end>", "Lag>", "Caught up>"], rows)


def _show_under_replicated(seen: ClusterSeen) -> None:
    rows = seen.under_replicated()
    if not rows:
        return
    say("")
    show_table(
        ["Under-replicated", "Leader>", "Replicas", "In sync"],
        [
            [
                f"{row['topic']}-{row['partition']}",
                "none" if row["leader"] == -1 else row["leader"],
                joined(row["replicas"]),
                joined(row["isr"]),
            ]
            for row in _first(rows)
        ],
    )
    _tell_more(rows)


def _show_moves(moves: Sequence[Move]) -> None:
    if not moves:
        return
    say("")
    show_table(
        ["On the move", "Replicas", "Adding", "Removing"],
        [
            [
                f"{move.topic}-{move.partition}",
                joined(move.replicas),
                joined(move.adding),
                joined(move.removing),
            ]
            for move in _first(moves)
        ],
    )
    _tell_more(moves)


def _first(rows: Sequence[Row]) -> Sequence[Row]:
    return rows[:ROWS_MAX]


def _tell_more(rows: Sequence[object]) -> None:
    if len(rows) > ROWS_MAX:
        say(f"... and {plural(len(rows) - ROWS_MAX, 'partition')} more; --json shows all")


def joined(nodes: object) -> str:
    assert isinstance(nodes, list), "a list of brokers"
    return ", ".join(str(node) for node in nodes)


def _bytes(count: object) -> str:
    return bytes_text(count) if isinstance(count, int) and count >= 0 else ""
