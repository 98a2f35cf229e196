"""What one does to brokers: see what moves between them, empty one, and forget one.

Draining is Ottla's own: a config of the broker, on which its controller acts. A cluster that does
not know the config moves nothing by itself, and says so.
"""

from dataclasses import dataclass
from typing import TypeVar

from ottla.client.admin import Admin, Operation, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, check
from ottla.client.protocol import Request
from ottla.model.types import NodeId
from ottla.protocol.messages import incremental_alter_configs as alter_wire
from ottla.protocol.messages import list_partition_reassignments as list_wire
from ottla.protocol.messages import unregister_broker as unregister_wire

Answer = TypeVar("Answer", list_wire.Response, unregister_wire.Response)

DRAINED = "ottla.drained"
REBALANCE = "ottla.rebalance.enable"


class CannotDrain(ClientError):
    """Nobody in this cluster would move the replicas."""


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that is on its way to other brokers."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]


class Brokers:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timeout_ms = cluster.settings.request_ms_max

    async def moves(self) -> list[Move]:
        """The reassignments in progress, sorted."""
        answer = await self._ask(list_wire.Request(self._timeout_ms), list_wire.Response)
        found = [
            Move(
                topic.name,
                item.partition_index,
                item.replicas,
                item.adding_replicas,
                item.removing_replicas,
            )
            for topic in answer.topics
            for item in topic.partitions
        ]
        return sorted(found, key=lambda move: (move.topic, move.partition))

    async def unregister(self, node: NodeId) -> None:
        """Have the cluster forget a broker that will not come back."""
        await self._ask(unregister_wire.Request(node), unregister_wire.Response)

    async def is_drained(self, node: NodeId) -> bool | None:
        """None if it is no Ottla. The broker itself is asked, so it has to be running."""
        return await self._flag(node, DRAINED)

    async def set_drained(self, node: NodeId, drained: bool) -> None:
        """Any broker passes it on, so that one that is down for good can be emptied too."""
        may_move = await self._cluster.retrying(lambda: self._may_move(node))
        if may_move is None:
            raise CannotDrain(
                "this is no Ottla: its controller moves no replicas by itself, so move them with "
                "kafka-reassign-partitions"
            )
        if drained and not may_move:
            raise CannotDrain(
                f"{REBALANCE} is false, so that nothing would be moved: move the replicas with "
                "kafka-reassign-partitions"
            )
        operation, value = (Operation.SET, "true") if drained else (Operation.DELETE, None)
        change = alter_wire.AlterableConfig(DRAINED, operation, value)
        resource = alter_wire.AlterConfigsResource(ResourceType.BROKER, str(node), [change])

        async def attempt() -> None:
            connection = await self._cluster.controller()
            request = alter_wire.Request([resource])
            answer = await connection.ask(request, alter_wire.Response, timeout_ms=self._timeout_ms)
            check(answer.responses[0].error_code, answer.responses[0].error_message)

        await self._cluster.retrying(attempt)

    async def _may_move(self, node: NodeId) -> bool | None:
        """Another broker is asked, if there is one."""
        await self._cluster.refresh()
        running = set(self._cluster.metadata.nodes)
        return await self._flag(min(running - {node} or running), REBALANCE)

    async def _flag(self, node: NodeId, name: str) -> bool | None:
        kind = ResourceType.BROKER
        configs = await Admin(self._cluster).describe_configs(kind, str(node), [name])
        return configs[0].value == "true" if configs else None

    async def _ask(self, request: Request, kind: type[Answer]) -> Answer:
        async def attempt() -> Answer:
            connection = await self._cluster.controller()
            answer = await connection.ask(request, kind, timeout_ms=self._timeout_ms)
            check(answer.error_code, answer.error_message)
            return answer

        return await self._cluster.retrying(attempt)
