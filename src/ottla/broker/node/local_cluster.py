"""Several nodes on one machine: where each has its data and its ports, and who votes.

Every node gets a `server.properties` of its own beside its log directory, so that any of them can
also be started alone. Directories that are empty are formatted for one cluster; what is there
already is kept. A node that is new in a cluster of before joins it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ottla.broker.controller.metadata_log import FormatRefused
from ottla.broker.node.formatting import Format, format_directories
from ottla.broker.node.preparation import RandomBytes
from ottla.env.disk import Disk
from ottla.metadata.image.features import ELR_VERSION, GROUP_VERSION
from ottla.metadata.image.ids import new_uuid
from ottla.model.types import NodeId, WallTime, uuid_text
from ottla.quorum.voters import Address, Voter, Voters
from ottla.storage.checkpoint import replace_file
from ottla.storage.identity import META_PROPERTIES, is_unused, read_meta

LISTENER: Final = "PLAINTEXT"
CONTROLLER: Final = "CONTROLLER"
VOTERS_MAX: Final = 3
REPLICATION_FACTOR_MAX: Final = 3
PROPERTIES_FILE: Final = "server.properties"
LOG_DIRECTORY: Final = "log"
FEATURES: Final = {ELR_VERSION: 1, GROUP_VERSION: 1}


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a local cluster."""

    id: NodeId
    directory: str
    host: str
    port: int
    controller_port: int

    @property
    def log_directory(self) -> str:
        return f"{self.directory}/{LOG_DIRECTORY}"

    @property
    def properties_file(self) -> str:
        return f"{self.directory}/{PROPERTIES_FILE}"


@dataclass(frozen=True, slots=True)
class LocalCluster:
    nodes: Sequence[Node]
    rack: str  # One machine is one rack: its nodes fail together.

    @classmethod
    def at(cls, data: str, count: int, *, host: str, port: int, rack: str) -> "LocalCluster":
        """Consecutive ports: clients' first, then the controllers'."""
        return cls.on_ports(
            data,
            [(port + index, port + count + index) for index in range(count)],
            host=host,
            rack=rack,
        )

    @classmethod
    def on_ports(
        cls, data: str, ports: Sequence[tuple[int, int]], *, host: str, rack: str
    ) -> "LocalCluster":
        """Each node's port for clients, and its controller's."""
        nodes = [
            Node(NodeId(number), f"{data}/node-{number}", host, port, controller_port)
            for number, (port, controller_port) in enumerate(ports, 1)
        ]
        return cls(nodes, rack)

    @property
    def voters(self) -> Sequence[Node]:
        """Three decide for all; two could not lose any, so of two there is one."""
        return self.nodes[: VOTERS_MAX if len(self.nodes) >= VOTERS_MAX else 1]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{_shown(node.host)}:{node.port}" for node in self.nodes)

    def properties_of(self, node: Node) -> dict[str, str]:
        """What the node runs with, by Kafka's names."""
        count = len(self.nodes)
        replicas = str(min(REPLICATION_FACTOR_MAX, count))
        is_voter = node in self.voters
        host = _shown(node.host)
        listeners = [f"{LISTENER}://{host}:{node.port}"]
        if is_voter:
            listeners.append(f"{CONTROLLER}://{host}:{node.controller_port}")
        return {
            "process.roles": "broker,controller" if is_voter else "broker",
            "node.id": str(node.id),
            "broker.rack": self.rack,
            "controller.listener.names": CONTROLLER,
            "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT,{CONTROLLER}:PLAINTEXT",
            "controller.quorum.bootstrap.servers": ",".join(
                f"{_shown(voter.host)}:{voter.controller_port}" for voter in self.voters
            ),
            "listeners": ",".join(listeners),
            "log.dirs": node.log_directory,
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "min.insync.replicas": "2" if count >= REPLICATION_FACTOR_MAX else "1",
            "group.initial.rebalance.delay.ms": "0",
        }

    def prepare(
        self, disk: Disk, changes: Mapping[str, str], now: WallTime, random_bytes: RandomBytes
    ) -> list[str]:
        """Write every node's settings and format what is empty; what was done, a line each."""
        self._refuse_foreign(disk)
        done = []
        cluster_id = self._known_cluster_id(disk)
        initial = None
        if cluster_id is None:
            cluster_id = uuid_text(new_uuid(random_bytes))
            initial = self._initial_voters(random_bytes)
        for node in self.nodes:
            disk.make_directory(node.directory)
            properties = {**self.properties_of(node), **changes}
            text = "".join(f"{key}={value}\n" for key, value in properties.items())
            replace_file(disk, node.properties_file, text.encode())
            if is_unused(disk, node.log_directory):
                wanted = Format(
                    cluster_id=cluster_id,
                    node_id=node.id,
                    directories=[node.log_directory],
                    metadata_directory=node.log_directory,
                    initial_voters=initial,
                    features=FEATURES,
                )
                done += format_directories(disk, wanted, now, random_bytes)
        return done

    def _initial_voters(self, random_bytes: RandomBytes) -> Voters:
        return Voters.of(
            Voter(
                node.id,
                new_uuid(random_bytes),
                {CONTROLLER: Address(node.host, node.controller_port)},
            )
            for node in self.voters
        )

    def _known_cluster_id(self, disk: Disk) -> str | None:
        """Of the nodes that were there before. A voter without its memory must not come back."""
        known = [read_meta(disk, node.log_directory) for node in self.nodes]
        ids = {meta.cluster_id for meta in known if meta is not None}
        if not ids:
            return None
        if len(ids) > 1:
            raise FormatRefused(f"{self._data} holds nodes of {len(ids)} clusters: choose another.")
        for node, meta in zip(self.nodes, known, strict=True):
            if meta is None and node in self.voters:
                raise FormatRefused(
                    f"{node.log_directory} is empty, but node {node.id} votes in the cluster of "
                    "the other nodes: bring its files back, or choose an empty directory for all."
                )
        return ids.pop()

    def _refuse_foreign(self, disk: Disk) -> None:
        """One node's own data, or more nodes than are asked for, are not to be passed over."""
        if not disk.is_directory(self._data):
            return
        if disk.exists(f"{self._data}/{META_PROPERTIES}"):
            raise FormatRefused(
                f"{self._data} is the data of a single node: start it without --brokers, or "
                "choose another directory."
            )
        there = [name for name in disk.list(self._data) if name.startswith("node-")]
        if len(there) > len(self.nodes):
            raise FormatRefused(
                f"{self._data} holds {len(there)} nodes: start it with --brokers {len(there)}."
            )

    @property
    def _data(self) -> str:
        return self.nodes[0].directory.rpartition("/")[0]


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
