"""`ottla cluster`: a look at the whole: brokers, controller, features, topics, disks."""

from typing import TYPE_CHECKING

from ottla.cli.asking import BOOTSTRAP_DEFAULT, AsJson, Bootstrap, ask

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.cluster import Cluster
    from ottla.protocol.messages.describe_cluster import Response


def cluster(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: AsJson = False) -> None:
    """Show brokers, features, topics and disks.

    \b
    Examples:
      ottla cluster
      ottla cluster --bootstrap-server broker1:9092,broker2:9092
      ottla cluster --json | jq '.brokers[].id'
    """
    from ottla.cli.terminal import show_json

    async def work(found: "Cluster") -> None:
        seen = await _look(found)
        if as_json:
            show_json(seen)
        else:
            _show(seen)

    ask(work, bootstrap)


async def _look(found: "Cluster") -> dict[str, object]:
    from ottla.client.admin import Admin

    admin = Admin(found)
    described = await admin.describe_cluster()
    topics = await admin.describe_topics()
    features = await admin.features()
    return {
        "cluster_id": described.cluster_id,
        "controller": await _controller(admin, described),
        "brokers": [
            {
                "id": item.broker_id,
                "host": item.host,
                "port": item.port,
                "rack": item.rack,
                "fenced": item.is_fenced,
            }
            for item in sorted(described.brokers, key=lambda item: item.broker_id)
        ],
        "features": {
            item.name: item.max_version_level
            for item in sorted(features.finalized_features, key=lambda item: item.name)
        },
        "topics": sum(not topic.is_internal for topic in topics),
        "internal_topics": sum(topic.is_internal for topic in topics),
        "partitions": sum(len(topic.partitions) for topic in topics),
        "partitions_without_leader": sum(
            item.leader_id < 0 for topic in topics for item in topic.partitions
        ),
        "partitions_under_replicated": sum(
            len(item.isr_nodes) < len(item.replica_nodes)
            for topic in topics
            for item in topic.partitions
        ),
        "log_dirs": await _log_dirs(admin, described),
    }


async def _controller(admin: "Admin", described: "Response") -> int:
    """The quorum's leader; a broker that is asked as a client names any broker instead."""
    from ottla.client.errors import ClientError

    try:
        return (await admin.quorum()).leader_id
    except ClientError:
        return described.controller_id


async def _log_dirs(admin: "Admin", described: "Response") -> list[dict[str, object]]:
    from ottla.client.errors import ClientError, error_code
    from ottla.model.types import NodeId

    seen: list[dict[str, object]] = []
    for broker in sorted(described.brokers, key=lambda item: item.broker_id):
        if broker.is_fenced:
            continue
        try:
            directories = await admin.log_dirs(NodeId(broker.broker_id))
        except ClientError as failure:
            seen.append({"broker": broker.broker_id, "path": "?", "state": str(failure)})
            continue
        seen += [
            {
                "broker": broker.broker_id,
                "path": item.log_dir,
                "state": "online" if not item.error_code else error_code(item.error_code).name,
                "partitions": sum(len(topic.partitions) for topic in item.topics),
                "bytes": sum(p.partition_size for topic in item.topics for p in topic.partitions),
                "free_bytes": item.usable_bytes,
                "total_bytes": item.total_bytes,
            }
            for item in directories
        ]
    return seen


def _show(seen: dict[str, object]) -> None:
    from ottla.cli.terminal import say, show_table

    say(f"Cluster {seen['cluster_id']}, controller {seen['controller']}")
    say(
        f"Topics: {seen['topics']}, and {seen['internal_topics']} internal; "
        f"partitions: {seen['partitions']}, {seen['partitions_without_leader']} without a leader, "
        f"{seen['partitions_under_replicated']} under-replicated"
    )
    say("")
    show_table(
        ["Broker>", "Address", "Rack", "State"],
        [
            [
                item["id"],
                f"{item['host']}:{item['port']}",
                item["rack"] or "",
                "fenced" if item["fenced"] else "running",
            ]
            for item in _listed(seen["brokers"])
        ],
    )
    say("")
    show_table(
        ["Broker>", "Log directory", "State", "Partitions>", "Used>", "Free>"],
        [
            [
                item["broker"],
                item["path"],
                item["state"],
                item.get("partitions", ""),
                _bytes(item.get("bytes")),
                _bytes(item.get("free_bytes")),
            ]
            for item in _listed(seen["log_dirs"])
        ],
    )
    features = seen["features"]
    assert isinstance(features, dict), "features by name"
    say("")
    show_table(["Feature", "Level>"], list(features.items()))


def _listed(items: object) -> list[dict[str, object]]:
    assert isinstance(items, list), "a list of what was seen"
    return items


def _bytes(count: object) -> str:
    from ottla.cli.terminal import bytes_text

    return bytes_text(count) if isinstance(count, int) and count >= 0 else ""
