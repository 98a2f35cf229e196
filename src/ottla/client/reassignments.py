"""Replicas and leaders of partitions: move, cancel, elect.

Each partition of a request has its own result.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import TypeAlias, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, Refused, check
from ottla.client.protocol import Request
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, TopicPartition
from ottla.protocol.messages import alter_partition_reassignments as move_wire
from ottla.protocol.messages import elect_leaders as elect_wire

Answer = TypeVar("Answer", move_wire.Response, elect_wire.Response)
Result: TypeAlias = move_wire.ReassignablePartitionResponse | elect_wire.PartitionResult
Refusals = dict[TopicPartition, Refused]
Plan = Mapping[TopicPartition, Sequence[NodeId] | None]


class Election(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class Failures(ClientError):
    """Some partitions were refused; the others were not."""

    def __init__(self, by_partition: Mapping[TopicPartition, Refused], total: int) -> None:
        super().__init__(by_partition, total)
        self.by_partition = by_partition
        self.total = total

    @property
    def is_retriable(self) -> bool:  # type: ignore[override]  # A fact of the class, or of the codes.
        return all(failure.is_retriable for failure in self.by_partition.values())

    def __str__(self) -> str:
        place, first = next(iter(self.by_partition.items()))
        more = len(self.by_partition) - 1
        others = f" (and {more} more of {self.total})" if more else ""
        return f"{place}: {first}{others}"


class Reassignments:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._timeout_ms = cluster.settings.request_ms_max

    async def start(self, plan: Plan) -> None:
        """Give each partition these replicas, the preferred leader first; None cancels its move.

        Returns when the moves have begun. Cancelling where nothing moves is no failure.
        """
        topics: dict[str, move_wire.ReassignableTopic] = {}
        for (name, index), replicas in plan.items():
            wanted = None if replicas is None else [int(node) for node in replicas]
            topic = topics.setdefault(name, move_wire.ReassignableTopic(name))
            topic.partitions.append(move_wire.ReassignablePartition(index, wanted))
        request = move_wire.Request(self._timeout_ms, topics=list(topics.values()))

        async def attempt() -> None:
            answer = await self._ask(request, move_wire.Response)
            check(answer.error_code, answer.error_message)
            refused = _refusals(
                (TopicPartition(topic.name, item.partition_index), item)
                for topic in answer.responses
                for item in topic.partitions
                if item.error_code != ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            )
            if refused:
                raise Failures(refused, len(plan))

        await self._cluster.retrying(attempt)

    async def elect(
        self, kind: Election, partitions: Sequence[TopicPartition] | None
    ) -> tuple[list[TopicPartition], Refusals]:
        """Elect leaders of these partitions, or of all.

        Returns the partitions that got another leader, and those that cannot have the one asked
        for; partitions that have it already are in neither.
        """
        topics: dict[str, elect_wire.TopicPartitions] = {}
        for name, index in partitions or ():
            topics.setdefault(name, elect_wire.TopicPartitions(name)).partitions.append(index)
        wanted = None if partitions is None else list(topics.values())
        request = elect_wire.Request(kind, wanted, self._timeout_ms)

        async def attempt() -> elect_wire.Response:
            answer = await self._ask(request, elect_wire.Response)
            check(answer.error_code)
            return answer

        answer = await self._cluster.retrying(attempt)
        results = [
            (TopicPartition(topic.topic, item.partition_id), item)
            for topic in answer.replica_election_results
            for item in topic.partition_result
            if item.error_code != ErrorCode.ELECTION_NOT_NEEDED
        ]
        refused = _refusals(results)
        return sorted(place for place, _ in results if place not in refused), refused

    async def _ask(self, request: Request, kind: type[Answer]) -> Answer:
        connection = await self._cluster.controller()
        return await connection.ask(request, kind, timeout_ms=self._timeout_ms)


def _refusals(results: Iterable[tuple[TopicPartition, Result]]) -> Refusals:
    return {
        place: Refused(item.error_code, item.error_message)
        for place, item in sorted(results, key=lambda result: result[0])
        if item.error_code
    }
