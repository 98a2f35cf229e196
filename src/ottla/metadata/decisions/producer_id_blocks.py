"""AllocateProducerIds: a broker gets blocks of a thousand producer ids; each id is used once."""

from typing import Final

from ottla.metadata.decisions.brokers import check_epoch
from ottla.metadata.decisions.context import DecisionContext, Outcome
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol import metadata_records as records
from ottla.protocol.messages import allocate_producer_ids as wire

BLOCK_SIZE: Final = 1000
_ID_MAX: Final = (1 << 63) - 1


def allocate_producer_ids(context: DecisionContext, request: wire.Request) -> Outcome:
    try:
        check_epoch(context.image, request.broker_id, request.broker_epoch)
    except Refusal as refusal:
        return Outcome([], wire.Response(error_code=refusal.code))
    first = context.image.producer_ids.next_id
    if first > _ID_MAX - BLOCK_SIZE:
        return Outcome([], wire.Response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    record = records.ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + BLOCK_SIZE,
    )
    return Outcome([record], wire.Response(producer_id_start=first, producer_id_len=BLOCK_SIZE))
