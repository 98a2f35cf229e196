"""Output of `ottla log-dirs`."""

from collections.abc import Sequence

from ottla.cli.views.terminal import bytes_text, say, show_json, show_table
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, error_code
from ottla.model.types import NodeId
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsResult


async def describe_log_dirs(
    cluster: Cluster, topics: Sequence[str], brokers: Sequence[int], *, as_json: bool
) -> None:
    """Log directories of these brokers, or of all that run."""
    await cluster.refresh()
    running = sorted(cluster.metadata.nodes)
    if missing := [node for node in brokers if node not in running]:
        known = ", ".join(map(str, running))
        raise ClientError(f"broker {missing[0]} does not run: those that do are {known}")
    if topics:
        await Admin(cluster).describe_topics(topics)  # Raises for one that does not exist.
    found = [
        _as_json(node, directory, topics)
        for node in [NodeId(node) for node in brokers] or running
        for directory in await Admin(cluster).log_dirs(node)
    ]
    if as_json:
        show_json(found)
        return
    for item in found:
        _show(item)


def _as_json(
    node: NodeId, directory: DescribeLogDirsResult, topics: Sequence[str]
) -> dict[str, object]:
    return {
        "broker": node,
        "log_dir": directory.log_dir,
        "error": error_code(directory.error_code).name if directory.error_code else None,
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
        "partitions": [
            {
                "topic": topic.name,
                "partition": item.partition_index,
                "bytes": item.partition_size,
                "offset_lag": item.offset_lag,
                "is_future": item.is_future_key,
            }
            for topic in sorted(directory.topics, key=lambda topic: topic.name)
            if not topics or topic.name in topics
            for item in sorted(topic.partitions, key=lambda item: item.partition_index)
        ],
    }


def _show(item: dict[str, object]) -> None:
    say(f"Broker {item['broker']}, {item['log_dir']}: {item['error'] or 'online'}")
    rows = item["partitions"]
    assert isinstance(rows, list)
    if rows:
        show_table(
            ["Partition", "Size>", "Lag>", ""],
            [
                [
                    f"{row['topic']}-{row['partition']}",
                    bytes_text(row["bytes"]),
                    row["offset_lag"],
                    "future" if row["is_future"] else "",
                ]
                for row in rows
            ],
        )
