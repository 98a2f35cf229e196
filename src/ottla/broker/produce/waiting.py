"""Produce requests that wait until their batches are as safe as `acks` asks.

The general path waits with one request, a run with several; both are answered by the same rules:
when the last staged batch is settled, or when the timeout has passed.
"""

from asyncio import TimerHandle
from typing import Final

from ottla.broker.context import BrokerContext
from ottla.broker.partitions.partition import Partition
from ottla.broker.wire.connection import Place
from ottla.model.errors import ErrorCode
from ottla.model.types import Millis

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1


class Waiting:
    """A subclass has the answer: what fails in it, and how it becomes bytes."""

    __slots__ = ("_open", "_timer", "acks", "acks_all", "place")

    def __init__(self, place: Place, acks: int) -> None:
        self.acks = acks
        self.acks_all = acks == ACKS_ALL
        self.place = place
        self._open = 0  # Appends that are not settled.
        self._timer: TimerHandle | None = None

    def start_timer(self, timeout_ms: Millis, context: BrokerContext) -> None:
        self._timer = context.call_later(timeout_ms, self._timed_out)

    def appended(self, _partition: Partition) -> None:
        self._open -= 1
        if self._open == 0 and self.place.pieces is None:  # Else it has timed out.
            self._answer()

    def failed(self, partition: Partition, code: ErrorCode) -> None:
        self._fail(partition, code)
        Waiting.appended(self, partition)

    def _timed_out(self) -> None:
        """Answer open appends as timed out, though they may yet be committed."""
        self._timer = None
        if self.place.pieces is None:
            self._fail_open(ErrorCode.REQUEST_TIMED_OUT)
            self._answer()

    def _answer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self.acks != ACKS_NONE:
            self._send()
            return
        self.place.complete(())
        if self._has_failed():
            # The client reads no answer, so an error can only close the connection.
            self.place.connection.close()

    def _fail(self, partition: Partition, code: ErrorCode) -> None:
        """The next open append of this partition has failed."""
        raise NotImplementedError

    def _fail_open(self, code: ErrorCode) -> None:
        """All open appends have failed."""
        raise NotImplementedError

    def _has_failed(self) -> bool:
        raise NotImplementedError

    def _send(self) -> None:
        raise NotImplementedError
