"""Producer ids for this broker's clients, taken from the controller by the block."""

from collections import deque
from collections.abc import Callable

from ottla.broker.context import BrokerContext
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import ProducerId
from ottla.protocol.messages import allocate_producer_ids as wire

Take = Callable[[ProducerId | Refusal], None]


class ProducerIds:
    """An id is given once, ever: what is left of a block when the broker stops is lost."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._next = self._end = 0
        self._waiting: deque[Take] = deque()

    def take(self, take: Take) -> None:
        """`take` gets the next id, now or when the controller has given us a block."""
        self._waiting.append(take)
        if self._next < self._end:
            self._serve()
        elif len(self._waiting) == 1:
            self._context.spawn(self._fill())

    async def _fill(self) -> None:
        """Ask for blocks until nobody waits; if there is none, refuse all who do."""
        while self._waiting:
            request = wire.Request(self._context.node_id, self._context.broker_epoch)
            try:
                response: wire.Response = await self._context.submit(request)
                if response.error_code:
                    raise Refusal(ErrorCode(response.error_code))
            except Refusal:
                # Clients take it for what it is: try again in a moment.
                refusal = Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                waiting, self._waiting = self._waiting, deque()
                for take in waiting:
                    take(refusal)
                return
            self._next = response.producer_id_start
            self._end = self._next + response.producer_id_len
            self._serve()

    def _serve(self) -> None:
        while self._waiting and self._next < self._end:
            self._next += 1
            self._waiting.popleft()(ProducerId(self._next - 1))
