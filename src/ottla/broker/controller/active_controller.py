"""The controller while this node leads the metadata log: decides, and writes what it decided.

It is made anew with each epoch, from what is committed and what the log holds beyond that. All
that gathers while one batch is synced goes into the next. The quorum says what is committed; only
then are answers released. Once it is `dropped`, nothing more of it is written.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ottla.broker.controller.metadata_log import MetadataLog
from ottla.broker.machines.answer import Answer
from ottla.broker.machines.host import MachineHost
from ottla.env.environment import Environment
from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.decisions.controller import Controller
from ottla.metadata.image.batches import control_batch, data_batches, encoded_decision
from ottla.metadata.image.ids import new_uuid
from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import Refusal
from ottla.model.machine import Decision
from ottla.model.types import Monotonic, Offset, WallTime
from ottla.protocol.control_records import QuorumControl
from ottla.protocol.metadata_records import MetadataRecord
from ottla.records.batch import Batch

logger = logging.getLogger(__name__)


class Pending(NamedTuple):
    """A decision, or control records, with the offsets that it will have."""

    base_offset: Offset
    records: Sequence[MetadataRecord]
    values: Sequence[bytes]
    controls: tuple[QuorumControl, ...] = ()


class Written(NamedTuple):
    """What is in the log by our own hand, so that it need not be read back to be applied."""

    base_offset: Offset
    end_offset: Offset
    records: Sequence[MetadataRecord]


class Told(NamedTuple):
    """Whom to tell: that something is to be written, that the log grew, that it is synced."""

    work: Callable[[], None]
    grew: Callable[[], None]
    synced: Callable[[Offset], None]


class ActiveController:
    def __init__(
        self,
        env: Environment,
        log: MetadataLog,
        settings: ControllerSettings,
        committed: ClusterImage,
        epoch: int,
        told: Told,
    ) -> None:
        self.epoch = epoch
        self.pending: list[Pending] = []
        self.written: deque[Written] = deque()
        self.is_dropped = False
        self._env = env
        self._log = log
        self._told = told
        self._loop = asyncio.get_running_loop()
        self._next_offset = log.end_offset
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: Monotonic | None = None
        self.controller = Controller(
            committed.cluster_id,
            settings,
            below=env.random.randrange,
            new_uuid=lambda: new_uuid(env.random.randbytes),
            image=committed.frozen(),
        )
        for offset, record in log.records(committed.offset + 1, log.end_offset):
            self.controller.apply(offset, record)
        self.controller.passed(log.end_offset - 1)
        self._host: MachineHost[object, MetadataRecord, Any] = MachineHost(
            self.controller, self._append, env.clock, self._next_offset
        )
        self.controller.activated(env.clock.monotonic())
        self._set_timer()

    def submit(self, request: object) -> Answer[Any]:
        answer = self._host.submit(request)
        self._set_timer()
        return answer

    def write_records(self, records: list[MetadataRecord]) -> None:
        """A decision that nobody asked for."""
        base, written = self._append(Decision(records))
        for offset, record in enumerate(written, base):
            self.controller.apply(offset, record)

    def write_controls(self, controls: tuple[QuorumControl, ...]) -> None:
        """The quorum's own records, in their turn: the machine only counts past them."""
        self.pending.append(Pending(self._next_offset, (), (), controls))
        self._next_offset += len(controls)
        self.controller.passed(self._next_offset - 1)
        self._told.work()

    def committed(self, end_offset: Offset) -> None:
        while self.written and self.written[0].end_offset <= end_offset:
            self.written.popleft()
        self._host.committed(end_offset)

    def drop(self, refusal: Refusal) -> None:
        """This node does not lead any more, or not with this machine."""
        self.is_dropped = True
        self.pending.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._host.drop(refusal)

    async def write(self) -> None:
        """Write all that is pending, one batch at a time; an OSError is the caller's to judge.

        Each is synced before the next is written: so after a power cut only the last batch can be
        torn, and damage before it is never mistaken for that.
        """
        pending, self.pending = self.pending, []
        now = self._env.clock.wall()
        records = iter([record for decision in pending for record in decision.records])
        for data in self._batches(pending, now):
            if self.is_dropped:
                return
            batch = Batch(data)
            self._log.append(batch, now)
            count = 0 if batch.is_control else batch.last_offset_delta + 1
            taken = [next(records) for _ in range(count)]
            self.written.append(Written(batch.base_offset, batch.next_offset, taken))
            self._told.grew()
            self._told.synced(await self._log.sync())

    def _batches(self, pending: Sequence[Pending], now: WallTime) -> Iterator[bytearray]:
        gathered: list[Sequence[bytes]] = []
        base = pending[0].base_offset
        for decision in pending:
            if not decision.controls:
                gathered.append(decision.values)
                continue
            yield from data_batches(gathered, base, self.epoch, now)
            yield control_batch(decision.controls, decision.base_offset, self.epoch, now)
            gathered, base = [], decision.base_offset + len(decision.controls)
        yield from data_batches(gathered, base, self.epoch, now)

    def _append(
        self, decision: Decision[MetadataRecord, Any]
    ) -> tuple[Offset, list[MetadataRecord]]:
        """Give a decision its offsets and its bytes; `write` writes them."""
        assert decision.is_atomic, "the controller's decisions are never split"
        version = self.controller.image.metadata_version
        records, values = encoded_decision(decision.records, version)
        base = self._next_offset
        self.pending.append(Pending(base, records, values))
        self._next_offset = base + len(records)
        self._told.work()
        return base, records

    def _set_timer(self) -> None:
        """Have the controller see to what time brings: silent brokers, leaders to be moved."""
        deadline = self.controller.next_deadline()
        if self.is_dropped or deadline is None or deadline == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = deadline
        delay_ms = max(deadline - self._env.clock.monotonic(), 1)
        self._timer = self._loop.call_later(delay_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._timer_at = None
        if not self.is_dropped:
            self._host.tick()
            self._set_timer()
