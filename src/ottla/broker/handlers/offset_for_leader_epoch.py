"""OffsetForLeaderEpoch (api key 23), versions 2 to 4: where the log of a leader epoch ends.

Clients and followers ask it to find out where their log parts from the leader's (KIP-101, 320).
"""

from ottla.broker.handlers.context import PartitionContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.model.errors import Refusal
from ottla.model.types import ZERO_UUID
from ottla.protocol.messages import offset_for_leader_epoch as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: PartitionContext) -> None:
    topics = []
    for topic in request.topics:
        results = []
        for part in topic.partitions:
            result = wire.EpochEndOffset(partition=part.partition)
            try:
                partition = broker.partitions.led(topic.topic, ZERO_UUID, part.partition)
                partition.check_epoch(part.current_leader_epoch)
                result.leader_epoch, result.end_offset = partition.epoch_end_offset(
                    part.leader_epoch
                )
            except Refusal as refusal:
                result.error_code = refusal.code
            results.append(result)
        topics.append(wire.OffsetForLeaderTopicResult(topic.topic, results))
    send(reply, wire.Response(topics=topics))
