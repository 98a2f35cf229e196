"""A state machine whose log is an ordinary partition that this broker leads.

Loading replays the log in slices, so that nobody else waits for it: records, those of open
transactions included, and the markers that end them. A decision's records are one batch, appended
like any other; replies and effects leave when it is committed.

Records that the log cannot take (no room on the disk, too few in-sync replicas, too large, not
encodable) are refused before anything is staged: that costs the one request. While the log takes
no records at all, no timer of the machine fires, so that sessions do not expire meanwhile. If a
staged batch fails, the machine is lost with all that rests on it, and its owner loads another one.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from ottla.broker.context import Node
from ottla.broker.machines.answer import Answer, refused
from ottla.broker.machines.host import CommitTimeout, MachineHost, no_effects
from ottla.broker.partitions.partitions import Partitions
from ottla.env.files import FileRange
from ottla.model.errors import Damaged, ErrorCode, ProtocolError, Refusal
from ottla.model.machine import Decision, Marker, Producer, StateMachine, Verdict
from ottla.model.types import Monotonic, Offset, ProducerId, WallTime
from ottla.records.batch import HEADER_BYTES, Batch
from ottla.records.key_fold import Folded, Stored, fold, read_stored
from ottla.records.record import CONTROL_KEY, BadRecords, Record, build_batch

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition


logger = logging.getLogger(__name__)

SLICE_BYTES: Final = 256 * 1024  # Read, and looked through, between two turns of the loop.
APPLIED_MAX: Final = 500  # As many records are applied between two turns.
RECORD_OVERHEAD_BYTES: Final = 32  # At most: length, attributes, deltas, sizes, headers.
MARKER_VERSION: Final = 0
HELD_MS: Final = 500  # Between two looks whether the log takes records again.

R = TypeVar("R")
C = TypeVar("C")

_MARKER = Struct(">hi")  # Version and coordinator epoch.

Encoded = tuple[bytes, bytes | None]  # Key and value of a record.


class Codec(Protocol[R]):
    """How a machine's records are kept; `decode` gives None for what is not known here."""

    @property
    def replaced(self) -> tuple[bytes, ...]:
        """How keys begin of which only the last record of a run counts."""

    @property
    def decode(self) -> Callable[[bytes, bytes | None], R | None]: ...
    def encode(self, record: R) -> Encoded:
        """Raises ValueError for a record that has no place in Kafka's format."""


class MachinePartition(Generic[C, R]):
    def __init__(
        self,
        partition: "Partition",
        machine: StateMachine[C, R, Any],
        codec: Codec[R],
        node: Node,
        partitions: Partitions,
        lost: Callable[["MachinePartition[C, R]"], None],
        perform: Callable[[Any], None] = no_effects,
    ) -> None:
        """`lost` hears once that an append failed; the machine answers nobody any more.

        `perform` is given the effects of decisions that are committed.
        """
        self.partition = partition
        self.is_loaded = False
        self._machine = machine
        self._codec = codec
        self._node = node
        self._partitions = partitions
        self._lost = lost
        self._perform = perform
        self._is_dropped = False
        self._host: MachineHost[C, R, Any]
        self._timer: asyncio.TimerHandle | None = None
        self._armed: Monotonic | None = None
        self._held_until = Monotonic(0)

    @property
    def is_empty(self) -> bool:
        log = self.partition.log
        return log.log_start_offset >= log.end_offset

    @property
    def is_writable(self) -> bool:
        """Whether the log takes records now; no timer fires while it does not."""
        try:
            self._check_writable()
        except Refusal:
            return False
        return True

    async def load(self) -> None:
        """Fold the log; records that make no sense are skipped and logged, as Kafka does.

        Raises Damaged where the log has no batch that can be read.
        """
        log, end = self.partition.log, self.partition.log.end_offset
        offset = log.log_start_offset
        while offset < end and not self._is_dropped:
            piece = log.read(offset, SLICE_BYTES, end_offset=end)
            if piece is None:
                break
            folded = await self._node.env.workers.run(_folded, piece, self._codec.replaced)
            if folded.next_offset is None:
                what = f"no record batch of offset {offset} can be read"
                raise Damaged(piece.file.path, piece.position, what)
            await self._follow(folded.steps)
            offset = folded.next_offset

    def begin(self) -> None:
        """The log is folded: decide from here on.

        The log of a new leader may have an end that is not committed yet. It will be, since a
        leader never truncates its own log; no reply may rest on it before.
        """
        partition, settings = self.partition, self._node.settings
        late = Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The commit took too long.")
        self._host = MachineHost(
            self._machine,
            self._append,
            self._node.env.clock,
            partition.log.end_offset,
            perform=self._perform,
            committed_end=partition.high_watermark,
            commit_timeout=CommitTimeout(settings.offsets_commit_timeout_ms, late),
        )
        self.is_loaded = True
        partition.watching[self] = None

    def submit(self, command: C) -> Answer[Any]:
        """Decide after everything that is due; refused while the log is still loaded."""
        if not self.is_loaded:
            return refused(Refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        try:
            deadline = self._machine.next_deadline()
            if deadline is not None and deadline <= self._node.now and self.is_writable:
                self._host.tick()
            answer = self._host.submit(command)
        except Exception:
            self._fail(ErrorCode.UNKNOWN_SERVER_ERROR)  # It may have stopped halfway.
            raise
        self._arm()
        return answer

    def admit(self, records: Sequence[R]) -> None:
        """Refusal if the log cannot take these records, as one batch, at this moment."""
        self._check_writable()
        if records:
            self._batches(records, is_atomic=True)

    def drop(self) -> None:
        """Leadership is gone: whoever waits has to ask another broker."""
        if self._is_dropped:
            return
        self._is_dropped = True
        self.partition.watching.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        if self.is_loaded:
            self.is_loaded = False
            self._host.drop(Refusal(ErrorCode.NOT_COORDINATOR))

    @property
    def acks_all(self) -> bool:
        """A decision counts once it cannot be lost with this broker."""
        return True

    def grew(self, partition: "Partition") -> None:
        """The high watermark may have moved."""
        if not self._is_dropped:
            self._host.committed(partition.high_watermark)

    def appended(self, partition: "Partition") -> None:
        """`grew` follows: a batch that is in the log is answered when it is committed."""

    def failed(self, partition: "Partition", code: ErrorCode) -> None:  # noqa: ARG002
        self._fail(code)

    def _fail(self, code: ErrorCode) -> None:
        if not self._is_dropped:
            logger.error("%s: an append failed with %s", self.partition.name, code.name)
            self.drop()
            self._lost(self)

    def _check_writable(self) -> None:
        try:
            self._partitions.check_writable(self.partition)
            self.partition.check_enough_replicas()
        except Refusal as refusal:
            raise Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, refusal.message) from refusal

    def _append(self, decision: Decision[R, Any]) -> tuple[Offset, list[R]]:
        """Stage all records, or the marker; or raise Refusal and stage none."""
        self._check_writable()
        base_offset = self.partition.log.staged_end
        if decision.marker is not None:
            batches = [_marker_batch(decision.marker, self._node.env.clock.wall())]
        else:
            batches = self._batches(
                decision.records, is_atomic=decision.is_atomic, producer=decision.producer
            )
        for batch in batches:
            self.partition.append(batch, self, is_client=False)
        return base_offset, decision.records

    def _batches(
        self, records: Sequence[R], *, is_atomic: bool, producer: Producer | None = None
    ) -> list[Batch]:
        """One batch, or as many as are needed; Refusal if a batch would be too large."""
        now = self._node.env.clock.wall()
        bytes_max = min(
            self.partition.policy.message_bytes_max, self.partition.log.config.segment_bytes
        )
        try:
            encoded = self._encoded(records, bytes_max if is_atomic else None)
        except ValueError as error:
            logger.error("%s: a decision cannot be written: %s", self.partition.name, error)
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from error
        batches = []
        for part in [encoded] if is_atomic else _parts(encoded, bytes_max):
            kept = (Record(n, now, *one) for n, one in enumerate(part))
            batch = Batch(build_batch(kept) if producer is None else _of(producer, kept))
            if batch.size > bytes_max:
                raise self._too_large(batch.size)
            batches.append(batch)
        return batches

    def _encoded(self, records: Sequence[R], bytes_max: int | None) -> list[Encoded]:
        """Refusal as soon as they are too large for one batch.

        A short request may name many partitions of a group with a long name, which each record
        repeats.
        """
        encoded, size = [], 0
        for record in records:
            key, value = self._codec.encode(record)
            size += len(key) + len(value or b"")
            if bytes_max is not None and size > bytes_max:
                raise self._too_large(size)
            encoded.append((key, value))
        return encoded

    def _too_large(self, size: int) -> Refusal:
        name = self.partition.name
        logger.error("%s: a decision of %d bytes or more is too large to write", name, size)
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _arm(self) -> None:
        """Wake up at the next deadline, if no earlier waking is due anyway."""
        deadline, late_at = self._machine.next_deadline(), self._host.late_at()
        if late_at is not None and (deadline is None or late_at < deadline):
            deadline = late_at
        if deadline is None or (self._armed is not None and self._armed <= deadline):
            return
        deadline = max(deadline, self._held_until)
        if self._armed is not None and self._armed <= deadline:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed = deadline
        delay_ms = max(deadline - self._node.now, 0)
        self._timer = self._node.call_later(delay_ms, self._tick)

    def _tick(self) -> None:
        self._timer = self._armed = None
        self._host.refuse_late()
        if not self.is_writable:
            self._held_until = Monotonic(self._node.now + HELD_MS)
            self._arm()
            return
        try:
            self._host.tick()
        except Exception:
            logger.exception("%s: its machine failed", self.partition.name)
            self._fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._arm()

    async def _follow(self, steps: list[list[Stored] | Batch]) -> None:
        for step in steps:
            if isinstance(step, Batch):
                self._replay(step)
                continue
            for start in range(0, len(step), APPLIED_MAX):
                if start:
                    await asyncio.sleep(0)
                self._apply(step[start : start + APPLIED_MAX], None)

    def _replay(self, batch: Batch) -> None:
        """One of a transaction, or of records that make no sense."""
        try:
            kept = read_stored(batch)
        except BadRecords as error:
            self._pass_over(batch.base_offset, error)
            return
        producer = Producer(ProducerId(batch.producer_id), batch.producer_epoch)
        if batch.is_control:
            self._end_transaction(producer, kept)
        else:
            self._apply(kept, producer)

    def _end_transaction(self, producer: Producer, markers: list[Stored]) -> None:
        for offset, key, _ in markers:
            try:
                verdict = Verdict(CONTROL_KEY.unpack_from(key)[1])
            except (struct_error, ValueError) as error:
                self._pass_over(offset, error)
            else:
                self._machine.ended(producer, verdict)

    def _decoded(self, kept: list[Stored]) -> Iterator[tuple[Offset, R]]:
        for offset, key, value in kept:
            try:
                record = self._codec.decode(key, value)
            except ProtocolError as error:
                self._pass_over(offset, error)
                continue
            if record is not None:
                yield offset, record

    def _apply(self, kept: list[Stored], producer: Producer | None) -> None:
        for offset, record in self._decoded(kept):
            try:
                self._machine.apply(offset, record, producer)
            except (ValueError, KeyError, TypeError) as error:
                self._pass_over(offset, error)

    def _pass_over(self, offset: Offset, error: Exception) -> None:
        """As Kafka does: one record that makes no sense must not hide all the others."""
        logger.error("%s at offset %s: %s", self.partition.name, offset, error)


def _parts(encoded: Sequence[Encoded], bytes_max: int) -> Iterator[list[Encoded]]:
    """The records in batches that are not too large, if no single record is."""
    part: list[Encoded] = []
    size = HEADER_BYTES
    for key, value in encoded:
        record_bytes = RECORD_OVERHEAD_BYTES + len(key) + len(value or b"")
        if part and size + record_bytes > bytes_max:
            yield part
            part, size = [], HEADER_BYTES
        part.append((key, value))
        size += record_bytes
    yield part


def _of(producer: Producer, records: Iterable[Record], *, is_control: bool = False) -> bytearray:
    """A batch of the producer's transaction, without a sequence, as coordinators write it."""
    return build_batch(
        records,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        is_transactional=True,
        is_control=is_control,
    )


def _marker_batch(marker: Marker, now: WallTime) -> Batch:
    key = CONTROL_KEY.pack(MARKER_VERSION, marker.verdict.value)
    value = _MARKER.pack(MARKER_VERSION, marker.coordinator_epoch)
    return Batch(_of(marker.producer, [Record(0, now, key, value)], is_control=True))


def _folded(piece: FileRange, replaced: tuple[bytes, ...]) -> Folded:
    """For a worker: a few bytes of a compressed batch may hold very many records."""
    return fold(piece.read(), replaced)
