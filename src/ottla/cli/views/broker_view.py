"""Output of `ottla brokers`: address, leaders and replicas, disks of each broker.

Disks and drained state are asked from all brokers at once, with a short timeout: one that does not
answer hides only its own.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.cli.views.terminal import bytes_text, say, show_json, show_table
from ottla.client.admin import Admin
from ottla.client.brokers import Brokers
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, error_code
from ottla.model.types import NodeId
from ottla.protocol.messages.describe_cluster import DescribeClusterBroker, Response
from ottla.protocol.messages.metadata import MetadataResponseTopic

ANSWER_SECONDS_MAX = 5.0


@dataclass(slots=True)
class BrokerSeen:
    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool
    is_controller: bool
    leaders: int = 0
    replicas: int = 0
    replicas_out_of_sync: int = 0
    is_drained: bool | None = None  # None: unknown or not supported.
    log_dirs: list[dict[str, object]] = field(default_factory=list)
    trouble: str | None = None  # Why it could not be asked.

    @property
    def state(self) -> str:
        if self.is_fenced:
            return "fenced"
        if self.trouble:
            return "no answer"
        if self.is_drained:
            return "draining" if self.replicas else "drained"
        return "running"

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "host": self.host,
            "port": self.port,
            "rack": self.rack,
            "state": self.state,
            "fenced": self.is_fenced,
            "drained": self.is_drained,
            "controller": self.is_controller,
            "leaders": self.leaders,
            "replicas": self.replicas,
            "replicas_out_of_sync": self.replicas_out_of_sync,
            "bytes": self._sum("bytes"),
            "free_bytes": self._sum("free_bytes"),
            "total_bytes": self._sum("total_bytes"),
            "log_dirs": self.log_dirs,
        }

    def row(self) -> list[object]:
        used, free = self._sum("bytes"), self._sum("free_bytes")
        return [
            self.id,
            f"{self.host}:{self.port}",
            self.rack or "",
            self.state,
            "active" if self.is_controller else "",
            self.leaders,
            self.replicas,
            self.replicas_out_of_sync,
            "" if used is None else bytes_text(used),
            "" if free is None else bytes_text(free),
        ]

    def _sum(self, name: str) -> int | None:
        """Sum over the directories that report it; a broker of an old version reports -1."""
        known = [v for d in self.log_dirs if isinstance(v := d.get(name), int) and v >= 0]
        return sum(known) if known else None


async def list_brokers(cluster: Cluster, *, as_json: bool) -> None:
    admin = Admin(cluster)
    described = await admin.describe_cluster()
    seen = await look_at_brokers(cluster, described, await admin.describe_topics())
    if as_json:
        show_json([broker.as_json() for broker in seen])
        return
    show_brokers(seen)
    failed = [(broker.id, d) for broker in seen for d in broker.log_dirs if d["state"] != "online"]
    for node, directory in failed:
        say(f"Broker {node}: {directory['path']} is {directory['state']}")


def show_brokers(seen: Sequence[BrokerSeen]) -> None:
    show_table(
        [
            *("Broker>", "Address", "Rack", "State", "Controller"),
            *("Leads>", "Replicas>", "Out of sync>", "Used>", "Free>"),
        ],
        [broker.row() for broker in seen],
    )


async def look_at_brokers(
    cluster: Cluster, described: Response, topics: Sequence[MetadataResponseTopic]
) -> list[BrokerSeen]:
    controller = await controller_id(cluster, described)
    seen = {
        item.broker_id: _seen(item, controller)
        for item in sorted(described.brokers, key=lambda item: item.broker_id)
    }
    for topic in topics:
        for partition in topic.partitions:
            if partition.leader_id in seen:
                seen[partition.leader_id].leaders += 1
            for node in partition.replica_nodes:
                if node in seen:
                    seen[node].replicas += 1
                    seen[node].replicas_out_of_sync += node not in partition.isr_nodes
    await asyncio.gather(
        *(_look_into(cluster, broker) for broker in seen.values() if not broker.is_fenced)
    )
    return list(seen.values())


async def controller_id(cluster: Cluster, described: Response) -> int:
    """The quorum's leader; a broker names any broker to clients."""
    try:
        return (await Admin(cluster).quorum()).leader_id
    except ClientError:
        return described.controller_id


def _seen(item: DescribeClusterBroker, controller: int) -> BrokerSeen:
    return BrokerSeen(
        item.broker_id,
        item.host,
        item.port,
        item.rack,
        item.is_fenced,
        item.broker_id == controller,
    )


async def _look_into(cluster: Cluster, broker: BrokerSeen) -> None:
    node = NodeId(broker.id)
    try:
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            for item in await Admin(cluster).log_dirs(node):
                state = "online" if not item.error_code else error_code(item.error_code).name
                partitions = [p for topic in item.topics for p in topic.partitions]
                broker.log_dirs.append(
                    {
                        "broker": broker.id,
                        "path": item.log_dir,
                        "state": state,
                        "partitions": len(partitions),
                        "bytes": sum(p.partition_size for p in partitions),
                        "free_bytes": item.usable_bytes,
                        "total_bytes": item.total_bytes,
                    }
                )
            broker.is_drained = await Brokers(cluster).is_drained(node)
    except (ClientError, TimeoutError) as failure:
        broker.trouble = str(failure) or f"broker {broker.id} gave no answer"
