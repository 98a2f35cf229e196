"""Several nodes on one machine: directories, ports and voters.

Every node has a `server.properties` beside its log directory and can be started alone with it.
Empty directories are formatted for one cluster. The nodes of an earlier start keep their ports,
since the voters' addresses are in the metadata log; further nodes join that cluster as brokers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ottla.broker.node.auto_format import RandomBytes
from ottla.broker.node.directory_format import Format, format_directories
from ottla.broker.settings.endpoints import parse_host_port
from ottla.broker.settings.properties import parse_properties
from ottla.env.disk import Disk
from ottla.metadata.image.features import ELR_VERSION, GROUP_VERSION
from ottla.metadata.image.ids import new_uuid
from ottla.model.errors import FormatRefused
from ottla.model.types import NodeId, WallTime, uuid_text
from ottla.quorum.voters import Address, Voter, Voters
from ottla.storage.checkpoint import replace_file
from ottla.storage.identity import META_PROPERTIES, is_unused, read_meta

LISTENER: Final = "PLAINTEXT"
CONTROLLER: Final = "CONTROLLER"
PORT_MAX: Final = 65_535
VOTERS_MAX: Final = 3
REPLICATION_FACTOR_MAX: Final = 3
PROPERTIES_FILE: Final = "server.properties"
LOG_DIRECTORY: Final = "log"
METRICS_LISTENER: Final = "ottla.metrics.listener"
NONE: Final[Mapping[str, str]] = MappingProxyType({})
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
    founders: int = 0  # Nodes at the first start, if fewer: voters and replication follow these.

    @classmethod
    def at(cls, data: str, count: int, *, host: str, port: int, rack: str) -> "LocalCluster":
        """A new cluster on consecutive ports: clients' first, then the controllers'."""
        return cls.on_ports(
            data,
            [(port + index, port + count + index) for index in range(count)],
            host=host,
            rack=rack,
        )

    @classmethod
    def stored(cls, disk: Disk, data: str, *, rack: str) -> "LocalCluster | None":
        """The cluster that an earlier start left in `data`; None if there is none."""
        nodes: list[Node] = []
        while disk.exists(f"{data}/node-{len(nodes) + 1}/{PROPERTIES_FILE}"):
            nodes.append(_stored_node(disk, data, len(nodes) + 1))
        voters = sum(node.controller_port > 0 for node in nodes)
        founders = voters if voters > 1 else min(len(nodes), VOTERS_MAX - 1)
        return cls(nodes, rack, founders) if nodes else None

    def grown_to(self, count: int) -> "LocalCluster":
        """The same nodes and further ones, on the next ports that no node has.

        Raises FormatRefused if `count` is smaller than the number of nodes.
        """
        if count < len(self.nodes):
            raise _fewer(self._data, len(self.nodes))
        taken = {port for node in self.nodes for port in (node.port, node.controller_port)}
        first = self.nodes[0]
        free = (port for port in range(first.port, PORT_MAX + 1) if port not in taken)
        data = self._data
        further = [
            Node(NodeId(number), f"{data}/node-{number}", first.host, next(free), 0)
            for number in range(len(self.nodes) + 1, count + 1)
        ]
        return LocalCluster([*self.nodes, *further], self.rack, self.founders)

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
        return self.nodes[: VOTERS_MAX if self._founders >= VOTERS_MAX else 1]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{_shown(node.host)}:{node.port}" for node in self.nodes)

    def properties_of(self, node: Node, changes: Mapping[str, str] = NONE) -> dict[str, str]:
        """The node's settings by Kafka's names, with `changes` that hold for all nodes.

        A port for metrics is the first node's; the others count up from it.
        """
        count = self._founders
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
            **changes,
            **_metrics_listener(changes, node.id - 1),
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
            properties = self.properties_of(node, changes)
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
            raise _fewer(self._data, len(there))

    @property
    def _founders(self) -> int:
        return self.founders or len(self.nodes)

    @property
    def _data(self) -> str:
        return self.nodes[0].directory.rpartition("/")[0]


def _stored_node(disk: Disk, data: str, number: int) -> Node:
    """A node by its `server.properties`; its controller port is 0 if it does not vote."""
    directory = f"{data}/node-{number}"
    path = f"{directory}/{PROPERTIES_FILE}"
    try:
        items = parse_properties(disk.read(path).decode())
        listeners = next(item.value for item in items if item.key == "listeners").split(",")
        addresses = {
            name: parse_host_port(address)
            for name, _, address in (listener.partition("://") for listener in listeners)
        }
        clients, controller = addresses[LISTENER], addresses.get(CONTROLLER)
    except (KeyError, StopIteration, ValueError) as error:
        raise FormatRefused(f"{path} does not name the listeners of node {number}.") from error
    port = 0 if controller is None else controller.port
    return Node(NodeId(number), directory, clients.host, clients.port, port)


def _fewer(data: str, count: int) -> FormatRefused:
    return FormatRefused(
        f"{data} holds {count} nodes: start it with --brokers {count}. To remove node {count}: "
        f"ottla brokers drain {count} --wait; stop all; remove {data}/node-{count}; start again "
        f"with --brokers {count - 1}; ottla brokers unregister {count}."
    )


def _metrics_listener(changes: Mapping[str, str], index: int) -> dict[str, str]:
    host, _, port = changes.get(METRICS_LISTENER, "").rpartition(":")
    if not port.isdigit() or int(port) == 0:
        return {}  # Not set, a free port, or wrong: the settings say so.
    return {METRICS_LISTENER: f"{host}:{int(port) + index}"}


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
