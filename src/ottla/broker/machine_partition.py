"""A state machine whose log is an ordinary partition that this broker leads.

Loading replays the log in slices, so that nobody else waits for it. A decision's records are one
batch, appended like any other; replies leave when it is committed. If an append fails the machine
is lost, with all that rests on it, and whoever keeps it loads another one.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from ottla.broker.machine_host import MachineHost
from ottla.model.errors import ErrorCode, ProtocolError, Refusal
from ottla.model.machine import StateMachine
from ottla.model.types import Monotonic, Offset
from ottla.records.batch import Batch
from ottla.records.folding import Stored, fold
from ottla.records.record import CONTROL_KEY, BadRecords, Record, build_batch, read_records

if TYPE_CHECKING:
    from ottla.broker.partition import Partition
    from ottla.broker.server import Broker


logger = logging.getLogger(__name__)

SLICE_BYTES: Final = 256 * 1024  # Read, and looked through, between two turns of the loop.
APPLIED_MAX: Final = 500  # As many records are applied between two turns.
DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
COMMIT_MARKER: Final = 1
COMMIT_POLL_SECONDS: Final = 0.01

R = TypeVar("R")
C = TypeVar("C")


class Codec(Protocol[R]):
    """How a machine's records are kept; `decode` gives None for what is not known here."""

    @property
    def replaced(self) -> tuple[bytes, ...]:
        """How keys begin of which only the last record of a run counts."""

    @property
    def decode(self) -> Callable[[bytes, bytes | None], R | None]: ...
    def encode(self, record: R) -> tuple[bytes, bytes | None]: ...


class MachinePartition(Generic[C, R]):
    def __init__(
        self,
        partition: "Partition",
        machine: StateMachine[C, R, Any],
        codec: Codec[R],
        broker: "Broker",
        lost: Callable[["MachinePartition[C, R]"], None],
    ) -> None:
        """`lost` hears once that an append failed; the machine answers nobody any more."""
        self.partition = partition
        self.is_loaded = False
        self._machine = machine
        self._codec = codec
        self._broker = broker
        self._lost = lost
        self._is_dropped = False
        self._host: MachineHost[C, R, Any]
        self._timer: asyncio.TimerHandle | None = None
        self._armed: Monotonic | None = None
        self._open_transactions: dict[int, list[tuple[Offset, R]]] = {}

    @property
    def is_empty(self) -> bool:
        log = self.partition.log
        return log.log_start_offset >= log.end_offset

    async def load(self) -> None:
        """Fold the log; Damaged records are passed over, as Kafka does, with a line in the log.

        A new leader's log may hold what is not committed yet. It will be, as what the last leader
        left is never cut again; but nobody may be told of it before.
        """
        log, end = self.partition.log, self.partition.log.end_offset
        offset = log.log_start_offset
        while offset < end and not self._is_dropped:
            piece = log.read(offset, SLICE_BYTES, end_offset=end)
            if piece is None:
                break
            data = await self._broker.env.workers.run(piece.read)
            folded = fold(data, self._codec.replaced)
            if folded.next_offset is None:
                break
            await self._follow(folded.steps)
            offset = folded.next_offset
        self._open_transactions.clear()
        while not self._is_dropped and self.partition.high_watermark < end:  # noqa: ASYNC110
            await asyncio.sleep(COMMIT_POLL_SECONDS)  # Rare, and short.

    def begin(self) -> None:
        """The log is folded: from here on it decides."""
        clock, end = self._broker.env.clock, self.partition.log.end_offset
        self._host = MachineHost(self._machine, self._append, clock, end)
        self.is_loaded = True

    def submit(self, command: C, on_reply: Callable[[Any], None]) -> None:
        if not self.is_loaded:
            raise Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        try:
            self._host.submit(command, on_reply)
        except Refusal as refusal:
            self._fail(refusal.code)
        except Exception:
            self._fail(ErrorCode.UNKNOWN_SERVER_ERROR)  # It may have stopped halfway.
            raise
        else:
            self._arm()
            self._broker.partitions.flush_soon()

    def drop(self) -> None:
        """Leadership is gone: whoever waits has to ask another broker."""
        if self._is_dropped:
            return
        self._is_dropped = True
        if self._timer is not None:
            self._timer.cancel()
        if self.is_loaded:
            self.is_loaded = False
            self._host.drop(Refusal(ErrorCode.NOT_COORDINATOR))

    @property
    def acks_all(self) -> bool:
        """What a machine decided counts once it cannot be lost with this broker."""
        return True

    def appended(self, partition: "Partition") -> None:
        if not self._is_dropped:
            self._host.committed(partition.high_watermark)

    def failed(self, partition: "Partition", code: ErrorCode) -> None:  # noqa: ARG002
        self._fail(code)

    def _fail(self, code: ErrorCode) -> None:
        if not self._is_dropped:
            logger.error("%s: an append failed with %s", self.partition.name, code.name)
            self.drop()
            self._lost(self)

    def _append(self, records: list[R]) -> tuple[Offset, list[R]]:
        partition, now = self.partition, self._broker.env.clock.wall()
        self._broker.partitions.check_writable(partition)
        kept = [
            Record(delta, now, *self._codec.encode(record)) for delta, record in enumerate(records)
        ]
        base_offset, _ = partition.append(Batch(build_batch(kept)), self)
        return base_offset, records

    def _arm(self) -> None:
        """Wake the machine at its next deadline, if no earlier waking is due anyway."""
        deadline = self._machine.next_deadline()
        if deadline is None or (self._armed is not None and self._armed <= deadline):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed = deadline
        delay_ms = max(deadline - self._broker.now, 0)
        self._timer = self._broker.call_later(delay_ms, self._tick)

    def _tick(self) -> None:
        self._timer = self._armed = None
        try:
            self._host.tick()
        except Refusal as refusal:
            self._fail(refusal.code)
            return
        except Exception:
            logger.exception("%s: its machine failed", self.partition.name)
            self._fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._arm()
        self._broker.partitions.flush_soon()

    async def _follow(self, steps: list[list[Stored] | Batch]) -> None:
        for step in steps:
            if isinstance(step, Batch):
                self._replay(step)
                continue
            for start in range(0, len(step), APPLIED_MAX):
                if start:
                    await asyncio.sleep(0)
                self._apply(self._decoded(step[start : start + APPLIED_MAX]))

    def _replay(self, batch: Batch) -> None:
        """One of a transaction, or of records that make no sense."""
        try:
            kept = list(read_records(batch, DECOMPRESSED_BYTES_MAX))
        except BadRecords as error:
            self._pass_over(batch.base_offset, error)
            return
        if batch.is_control:
            self._end_transaction(batch.producer_id, kept)
            return
        records = self._decoded([(one.offset, one.key or b"", one.value) for one in kept])
        self._open_transactions.setdefault(batch.producer_id, []).extend(records)

    def _end_transaction(self, producer_id: int, markers: list[Record]) -> None:
        for marker in markers:
            if len(marker.key or b"") >= CONTROL_KEY.size:
                _, kind = CONTROL_KEY.unpack_from(marker.key or b"")
                written = self._open_transactions.pop(producer_id, [])
                if kind == COMMIT_MARKER:
                    self._apply(written)

    def _decoded(self, kept: list[Stored]) -> Iterator[tuple[Offset, R]]:
        for offset, key, value in kept:
            try:
                record = self._codec.decode(key, value)
            except ProtocolError as error:
                self._pass_over(offset, error)
                continue
            if record is not None:
                yield offset, record

    def _apply(self, records: Iterable[tuple[Offset, R]]) -> None:
        for offset, record in records:
            try:
                self._machine.apply(offset, record)
            except (ValueError, KeyError, TypeError) as error:
                self._pass_over(offset, error)

    def _pass_over(self, offset: Offset, error: Exception) -> None:
        """As Kafka does: one record that makes no sense must not hide all the others."""
        logger.error("%s at offset %s: %s", self.partition.name, offset, error)
