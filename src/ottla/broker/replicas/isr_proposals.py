"""What leaders here ask the controller about their ISRs: AlterPartition, one request at a time.

Proposals that gather while a request is under way go with the next one, so that a slow follower of
a thousand partitions costs two requests. What gets no answer is asked again after a moment.
"""

import asyncio
import logging
from typing import Final

from ottla.broker.context import BrokerContext
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.metadata.image.cluster import RECOVERED
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import NodeId
from ottla.protocol.messages import alter_partition as wire
from ottla.replication.leader import Assignment, ProposeIsr

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.05


class IsrProposals:
    def __init__(self, context: BrokerContext) -> None:
        self.shrunk = 0  # How many ISRs the controller let become smaller,
        self.expanded = 0  # and how many larger.
        self._context = context
        self._pending: dict[ReplicatedPartition, ProposeIsr] = {}
        self._sizes: dict[ProposeIsr, int] = {}  # How many were in sync when it was proposed.
        self._is_running = False

    def propose(self, partition: ReplicatedPartition, proposal: ProposeIsr) -> None:
        assert partition.leader is not None, "only a leader proposes"
        self._pending[partition] = proposal
        self._sizes[proposal] = len(partition.leader.isr)
        if not self._is_running:
            self._is_running = True
            self._context.spawn(self._run())

    async def _run(self) -> None:
        try:
            while self._pending:
                self._sizes = {p: self._sizes[p] for p in self._pending.values()}
                asked, self._pending = self._pending, {}
                if not await self._ask(asked):
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._is_running = False

    async def _ask(self, asked: dict[ReplicatedPartition, ProposeIsr]) -> bool:
        """Whether the controller answered; if not, the leaders are told to ask again."""
        request = _request(self._context.node_id, self._context.broker_epoch, asked)
        try:
            response: wire.Response = await self._context.submit(request)
            code = ErrorCode(response.error_code)
        except Refusal as refusal:
            code = refusal.code
        if code:
            logger.info("the controller did not decide on %d ISRs: %s", len(asked), code.name)
            for partition, proposal in asked.items():
                partition.isr_refused(proposal, code)
            return False
        answers = {
            (topic.topic_id, part.partition_index): part
            for topic in response.topics
            for part in topic.partitions
        }
        for partition, proposal in asked.items():
            answer = answers.get((partition.topic_id, partition.name.partition))
            if answer is None:
                partition.isr_refused(proposal, ErrorCode.UNKNOWN_SERVER_ERROR)
            elif answer.error_code:
                partition.isr_refused(proposal, ErrorCode(answer.error_code))
            else:
                self._decided(partition, proposal, answer)
        return not self._pending

    def _decided(
        self,
        partition: ReplicatedPartition,
        proposal: ProposeIsr,
        answer: wire.ResponsePartitionData,
    ) -> None:
        isr = tuple(map(NodeId, answer.isr))
        grown = len(proposal.isr) - self._sizes.get(proposal, len(proposal.isr))
        self.shrunk += grown < 0
        self.expanded += grown > 0
        decided = Assignment(answer.leader_epoch, answer.partition_epoch, (), isr)
        partition.isr_decided(proposal, decided)


def _request(
    node: NodeId, broker_epoch: int, asked: dict[ReplicatedPartition, ProposeIsr]
) -> wire.Request:
    topics: dict[bytes, wire.RequestTopicData] = {}
    for partition, proposal in asked.items():
        topic = topics.setdefault(partition.topic_id, wire.RequestTopicData(partition.topic_id))
        topic.partitions.append(
            wire.RequestPartitionData(
                partition_index=partition.name.partition,
                leader_epoch=proposal.leader_epoch,
                new_isr_with_epochs=[wire.BrokerState(*member) for member in proposal.isr],
                leader_recovery_state=RECOVERED,
                partition_epoch=proposal.partition_epoch,
            )
        )
    return wire.Request(node, broker_epoch, list(topics.values()))
