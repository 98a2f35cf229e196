"""What a client remembers of the cluster: its brokers, and who leads the partitions of a topic."""

from typing import NamedTuple

from ottla.client.errors import ClientError, Refused
from ottla.env.network import Address
from ottla.model.errors import ErrorCode
from ottla.model.types import ZERO_UUID, NodeId, Uuid
from ottla.protocol.messages import metadata as wire

NO_NODE = NodeId(-1)


class UnknownTopic(ClientError):
    def __init__(self, name: str) -> None:
        super().__init__(f"there is no topic {name!r}")
        self.name = name


class UnknownPartition(ClientError):
    def __init__(self, topic: str, partition: int, partitions: int) -> None:
        super().__init__(
            f"topic {topic!r} has no partition {partition}: it has {partitions}, counted from 0"
        )


class Node(NamedTuple):
    node_id: NodeId
    address: Address
    rack: str | None


class Topic:
    __slots__ = ("id", "led", "name", "partitions")

    def __init__(self, answer: wire.MetadataResponseTopic) -> None:
        assert answer.name is not None, "topics are asked for by name"
        self.name = answer.name
        self.id: Uuid = answer.topic_id
        self.partitions = {item.partition_index: item for item in answer.partitions}
        self.led = sorted(i for i, item in self.partitions.items() if item.leader_id != NO_NODE)

    @property
    def has_id(self) -> bool:
        """Whether the broker told the id: those before Kafka 2.8 have none."""
        return self.id != ZERO_UUID

    def leader(self, partition: int) -> NodeId:
        found = self.partitions.get(partition)
        if found is None:
            raise UnknownPartition(self.name, partition, len(self.partitions))
        if found.leader_id == NO_NODE:
            raise Refused(ErrorCode.LEADER_NOT_AVAILABLE, about=f"{self.name}-{partition}")
        return NodeId(found.leader_id)

    def leader_epoch(self, partition: int) -> int:
        """-1 if the broker did not tell."""
        found = self.partitions.get(partition)
        return -1 if found is None else found.leader_epoch


class Metadata:
    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = NO_NODE
        self.nodes: dict[NodeId, Node] = {}
        self.topics: dict[str, Topic] = {}

    def update(self, answer: wire.Response) -> None:
        """Take over what a broker said; topics that it did not speak of stay as they are."""
        self.cluster_id = answer.cluster_id
        self.controller_id = NodeId(answer.controller_id)
        self.nodes = {
            NodeId(item.node_id): Node(
                NodeId(item.node_id), Address(item.host, item.port), item.rack
            )
            for item in answer.brokers
        }
        for item in answer.topics:
            if item.name is None:
                continue
            if item.error_code == ErrorCode.NONE:
                self.topics[item.name] = Topic(item)
            else:
                self.topics.pop(item.name, None)
