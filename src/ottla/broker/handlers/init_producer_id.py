"""InitProducerId (api key 22), versions 0 to 5: an id for an idempotent producer.

v3  a producer may name its present id and epoch; without a transactional id it gets a new one

Transactions are not served yet: a transactional id is answered with UNSUPPORTED_VERSION, which
clients take for final. Kafka's own code for a missing coordinator would make them ask for ever.
"""

from ottla.broker.handlers.context import ProducerIdContext
from ottla.broker.wire.apis import handles
from ottla.broker.wire.connection import Reply
from ottla.broker.wire.responses import send
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import ProducerId
from ottla.protocol.messages import init_producer_id as wire


@handles(wire.Request)
def handle(request: wire.Request, reply: Reply, broker: ProducerIdContext) -> None:
    if request.transactional_id == "":
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION, "Transactions are not served yet.")

    def take(taken: ProducerId | Refusal) -> None:
        if isinstance(taken, Refusal):
            send(reply, wire.Response(error_code=taken.code, producer_epoch=-1))
        else:
            send(reply, wire.Response(producer_id=taken, producer_epoch=0))

    broker.producer_ids.take(take)
