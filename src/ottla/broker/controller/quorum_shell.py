"""Does what the quorum wants done: one event at a time, its effects in order, each before the next.

So a vote is on disk before it is given, and what was fetched before more is asked for. The machine
decides (`ottla.quorum`); here are the files, the connections and the clock around it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from ottla.broker.controller.metadata_log import MetadataLog
from ottla.broker.controller.quorum_peers import QuorumPeers
from ottla.env.environment import Environment
from ottla.env.errnos import PASSING
from ottla.metadata.image.batches import control_batch
from ottla.metadata.image.snapshot_file import SnapshotId
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import Monotonic, NodeId, Offset
from ottla.protocol.control_records import QuorumControl
from ottla.quorum import effects as fx
from ottla.quorum.election_state import NOBODY, ElectionState
from ottla.quorum.machine import Quorum
from ottla.quorum.messages import Misplaced
from ottla.records.batch import Batch

logger = logging.getLogger(__name__)

STATE_RETRY_SECONDS: Final = 0.5

# Work for the machine, at the time at which it is told of it.
Event = Callable[[Monotonic], list[fx.Effect]]


class _Closed(Exception):
    """The node stops before a state could be written: nothing that follows from it is done."""


class Owner(Protocol):
    """Whoever writes to the log while this node leads, and acts on what is committed."""

    async def wait_written(self) -> None:
        """Until nothing of what it leads is on its way to the disk."""

    def began(self, epoch: int) -> None: ...
    def ended(self, epoch: int) -> None: ...
    def write_control(self, records: tuple[QuorumControl, ...]) -> None: ...
    def committed(self, high_watermark: Offset) -> None: ...
    def snapshot_installed(self) -> None: ...
    def acted(self) -> None:
        """All that happened so far is acted upon."""

    def failed(self, error: BaseException) -> None: ...


class QuorumShell:
    def __init__(self, env: Environment, log: MetadataLog, quorum: Quorum, owner: Owner) -> None:
        self._env = env
        self._log = log
        self._quorum = quorum
        self._owner = owner
        self.peers = QuorumPeers(
            env.network, quorum.timing.request_timeout_ms, self._answered, self._unanswered
        )
        self.loop: asyncio.AbstractEventLoop | None = None  # Once the node takes part.
        self._events: deque[Event] = deque()
        self._performing: asyncio.Future[None] | None = None
        self._tickets: dict[int, Callable[[Any], None]] = {}
        self._last_ticket = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: Monotonic | None = None
        self._is_closed = False
        self._is_stuck = False  # What it would answer with cannot be written.
        self.leader_before: NodeId = NOBODY  # Whom this node followed last.

    def happened(self, event: Event) -> None:
        """Tell the machine, after all that it was told before has been acted upon."""
        if self._is_closed:
            return
        self._events.append(event)
        if self._performing is None:
            loop = self.loop or asyncio.get_running_loop()
            self._performing = loop.create_task(self._perform_all())

    def log_grew(self) -> None:
        self.happened(self._quorum.appended)

    def log_synced(self, end: Offset) -> None:
        self.happened(partial(self._quorum.synced, end))

    def request(self, request: Any, on_reply: Callable[[Any], None]) -> None:  # noqa: ANN401
        """Another node's request of the quorum's own APIs; `on_reply` gets the response, once.

        None if it is about another log, or cannot be answered: they must not gather here meanwhile.
        """
        if self._is_stuck:
            on_reply(None)
            return
        self._last_ticket += 1
        self._tickets[self._last_ticket] = on_reply
        ticket = self._last_ticket

        def received(now: Monotonic) -> list[fx.Effect]:
            try:
                return self._quorum.received(ticket, request, now)
            except Misplaced:
                self._tickets.pop(ticket)(None)
                return []

        self.happened(received)

    async def ask(self, request: Any) -> Any:  # noqa: ANN401
        """Like `request`, for those who wait."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(response: Any) -> None:  # noqa: ANN401
            if not answered.done():
                answered.set_result(response)

        self.request(request, answer)
        response = await answered
        if response is None:
            raise Refusal(ErrorCode.NOT_CONTROLLER)
        return response

    async def settle(self) -> None:
        """Wait until all that happened so far is acted upon."""
        while self._performing is not None:
            await asyncio.shield(self._performing)

    def close(self) -> None:
        self._is_closed = True
        self._events.clear()
        self.peers.close()
        if self._timer is not None:
            self._timer.cancel()

    async def _perform_all(self) -> None:
        try:
            while self._events:
                effects = self._events.popleft()(self._env.clock.monotonic())
                if self._quorum.state.leader not in (NOBODY, self._quorum.key.id):
                    self.leader_before = self._quorum.state.leader
                for effect in effects:
                    await self._perform(effect)
        except _Closed:
            pass
        except Exception as error:  # noqa: BLE001  The node ends with it, whatever it is.
            self.close()
            self._owner.failed(error)
        finally:
            self._performing = None
            if not self._is_closed:
                self._set_timer()
            self._owner.acted()

    async def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Send():
                self.peers.send(effect)
            case fx.Reply(ticket, response):
                self._tickets.pop(ticket, _nobody)(response)
            case fx.Committed(high_watermark):
                self._owner.committed(high_watermark)
            case fx.PersistState(state):
                await self._write_state(state)
            case fx.BeginEpoch(epoch, records):
                await self._begin(epoch, records)
            case fx.EndEpoch(epoch):
                self._owner.ended(epoch)
            case fx.AppendControl(_, records):
                self._owner.write_control(records)
            case _:
                await self._owner.wait_written()
                await self._follow(effect)

    async def _write_state(self, state: ElectionState) -> None:
        """Write the election state, again and again until that succeeds; no message leaves before.

        The state machine is ahead of the disk meanwhile, and peers see a slow node. A single voter
        raises at its start instead, since no other voter can replace it.
        """
        while True:
            try:
                await self._log.election_state.write(state)
            except OSError as error:
                if error.errno not in PASSING or self._quorum.voters.is_alone:
                    raise
                logger.error("the vote of this controller cannot be written now: %s", error)
            else:
                self._is_stuck = False
                return
            self._is_stuck = True
            await asyncio.sleep(STATE_RETRY_SECONDS)
            if self._is_closed:
                raise _Closed

    async def _begin(self, epoch: int, records: tuple[QuorumControl, ...]) -> None:
        await self._owner.wait_written()
        now = self._env.clock.wall()
        data = control_batch(records, self._log.end_offset, epoch, now)
        self._log.append(Batch(data), now)
        logger.info("this controller is the active one, in epoch %d", epoch)
        self._owner.began(epoch)
        self.log_grew()
        self.log_synced(await self._log.sync())

    async def _follow(self, effect: fx.Effect) -> None:
        """What a follower does to its log."""
        match effect:
            case fx.AppendFetched(data):
                event = (
                    self._quorum.appended
                    if await self._append(data)
                    else (self._quorum.not_written)
                )
                self.happened(event)
            case fx.TruncateTo(offset):
                logger.info(
                    "cutting the metadata log back to offset %d, as the leader has it", offset
                )
                self._log.truncate_to(offset)
                self.happened(self._quorum.appended)
            case fx.WriteSnapshotPiece(snapshot, position, data):
                await self._env.workers.run(
                    self._log.snapshots.write_piece, SnapshotId(*snapshot), position, data
                )
            case fx.InstallSnapshot(snapshot):
                await self._log.install_snapshot(snapshot)
                self._owner.snapshot_installed()
                self.happened(self._quorum.snapshot_installed)

    async def _append(self, data: bytes) -> bool:
        try:
            for batch in self._log.fetched(data):
                self._log.append(batch, self._env.clock.wall())
                await self._log.sync()
        except Damaged as error:
            logger.warning("cannot use a piece of the metadata log: %s", error)
            return False
        except OSError as error:
            if error.errno not in PASSING:
                raise
            logger.error("the metadata log cannot be written now: %s", error)
            return False
        return True

    def _answered(self, sent: fx.Send, response: Any) -> None:  # noqa: ANN401
        def answered(now: Monotonic) -> list[fx.Effect]:
            try:
                return self._quorum.answered(sent.to, sent.request, response, now)
            except Misplaced:
                logger.warning("%s answers about something else", sent.address)
                return []

        self.happened(answered)

    def _unanswered(self, sent: fx.Send, is_closed: bool) -> None:
        self.happened(
            lambda now: self._quorum.failed(sent.to, sent.request, now, is_closed=is_closed)
        )

    def _set_timer(self) -> None:
        deadline = self._quorum.next_deadline()
        if deadline == self._timer_at and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = deadline
        if deadline is not None:
            delay_ms = max(deadline - self._env.clock.monotonic(), 0)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(delay_ms / 1000, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        self.happened(self._quorum.tick)


def _nobody(_: object) -> None:
    """Whoever asked has gone."""
