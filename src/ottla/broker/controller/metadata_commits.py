"""Commits to the metadata log: writes decisions while this node leads, publishes what is committed.

Where this node leads: append, sync, and once a majority has it apply to the committed image, notify
the subscribers, answer. Where it does not, the image grows by what was fetched and is committed. A
full disk refuses decisions until there is room; any other failure of the log ends `run`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from ottla.broker.controller.active_controller import ActiveController, Told
from ottla.broker.controller.committed_image import CommittedImage
from ottla.broker.controller.metadata_log import MetadataLog
from ottla.broker.controller.quorum_shell import QuorumShell
from ottla.env.environment import Environment
from ottla.env.errnos import PASSING
from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.features import raised_alone
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, NodeId, Offset
from ottla.protocol.control_records import QuorumControl
from ottla.protocol.metadata_records import AbortTransactionRecord, MetadataRecord
from ottla.quorum.machine import Quorum

logger = logging.getLogger(__name__)

Subscriber = Callable[[ImageDelta], None]


class MetadataCommits:
    def __init__(
        self,
        env: Environment,
        log: MetadataLog,
        quorum: Quorum,
        settings: ControllerSettings,
        bootstrap: Sequence[MetadataRecord],
        on_acted: Callable[[], None],
    ) -> None:
        """`bootstrap` are the first records of a new cluster, as formatting left them.

        `on_acted` is called whenever all that the quorum wanted done so far is done.
        """
        self.committed_image = CommittedImage(env, quorum.cluster_id, log)
        self.shell = QuorumShell(env, log, quorum, self)
        self.active: ActiveController | None = None  # While this node leads.
        # Called when this node begins to lead, or again: no broker has a session then.
        self.on_began: Callable[[], None] | None = None
        self._env = env
        self._log = log
        self._quorum = quorum
        self._settings = settings
        self._bootstrap = bootstrap
        self._on_acted = on_acted
        self._subscribers: list[Subscriber] = []
        self._committing: asyncio.Future[None] | None = None
        self._work = asyncio.Event()
        self._failure: BaseException | None = None
        self._is_stopping = False

    def silent_brokers(self, silent_ms: Millis) -> list[NodeId]:
        """Brokers without a heartbeat for so long, if this node is the active controller."""
        if self.active is None:
            return []
        return self.active.controller.silent_brokers(self._env.clock.monotonic(), silent_ms)

    @property
    def log_end_offset(self) -> Offset:
        """End of this node's log, committed or not."""
        return self._log.end_offset

    def subscribe(self, subscriber: Subscriber) -> None:
        """`subscriber` hears of each change once it is in `image`, before anyone is answered."""
        self._subscribers.append(subscriber)

    async def run(self) -> None:
        """Commit what is decided, until `stop`; whatever it raises is the end of this node."""
        while self._has_pending or not self._is_stopping:
            if not self._has_pending:
                self._work.clear()
                await self._work.wait()
            await self.settle()
            await self.snapshot_if_due()

    async def settle(self) -> None:
        """Write what is decided so far, and act on what the quorum says of it.

        A write that has begun goes on even if its caller is cancelled: between the
        file and the image there is no half.
        """
        while True:
            if self._failure is not None:
                raise self._failure
            if self._has_pending and self._committing is None:
                self._committing = asyncio.ensure_future(self._write())
            if self._committing is not None:
                await asyncio.shield(self._committing)
            await self.shell.settle()
            if self._failure is None and self._committing is None and not self._has_pending:
                return

    @property
    def _has_pending(self) -> bool:
        return self.active is not None and bool(self.active.pending)

    def stop(self) -> None:
        """`run` ends after what is pending."""
        self._is_stopping = True
        self._work.set()

    def drop(self) -> None:
        """Nothing more is decided: this node closes."""
        if self.active is not None:
            self.active.drop(Refusal(ErrorCode.NOT_CONTROLLER))

    async def snapshot_if_due(self) -> None:
        """Also called by housekeeping: a snapshot may be due by time alone."""
        image = self.committed_image.image
        if self._committing is not None or image.is_in_transaction:
            return  # Between two batches of a commit the image is not whole; `run` comes back.
        if not self.committed_image.snapshots.is_due:
            return
        try:
            await self.committed_image.snapshots.write(image.frozen())
        except OSError as error:
            if error.errno not in PASSING:
                raise
            logger.error("no snapshot of the metadata log can be written now: %s", error)

    async def wait_written(self) -> None:
        if self._committing is not None:
            await asyncio.wait([self._committing])

    def began(self, epoch: int) -> None:
        """This node leads: settle what the log left open."""
        active = self.active = self._new_active(epoch)
        image = active.controller.image
        if image.is_in_transaction:
            active.write_records([AbortTransactionRecord(reason="The controller was restarted.")])
        if not image.metadata_version:
            active.write_records(list(self._bootstrap))
            if self._quorum.is_alone:  # Later, a level that is missing was lowered to 0.
                active.write_records(raised_alone(image.features))
        if self.on_began is not None:
            self.on_began()

    def ended(self, epoch: int) -> None:
        logger.info("this controller is not the active one any more, after epoch %d", epoch)
        active, self.active = self.active, None
        if active is not None:
            active.drop(Refusal(ErrorCode.NOT_CONTROLLER))

    def write_control(self, records: tuple[QuorumControl, ...]) -> None:
        if self.active is not None:
            self.active.write_controls(records)

    def committed(self, high_watermark: Offset) -> None:
        """Fold all below it into the image, act on it, then answer."""
        own = list(self.active.written) if self.active is not None else []
        self._publish(self.committed_image.advance(high_watermark, own))
        self._log.history.committed(self.committed_image.image.offset + 1)
        if self.active is not None:
            self.active.committed(high_watermark)
        self._work.set()

    def snapshot_installed(self) -> None:
        self._publish(self.committed_image.replace())

    def acted(self) -> None:
        self._on_acted()

    def failed(self, error: BaseException) -> None:
        self._failure = error
        self._work.set()
        self._on_acted()

    def _publish(self, delta: ImageDelta) -> None:
        for subscriber in self._subscribers:
            subscriber(delta)

    async def _write(self) -> None:
        active = self.active
        try:
            if active is None:
                return  # Its epoch has ended since, and those who waited were told.
            await active.write()
        except OSError as error:
            if error.errno not in PASSING or self.committed_image.image.is_in_transaction:
                self.failed(error)
            else:
                logger.error("the metadata log cannot be written: %s", error)
                self._start_again(active)
        finally:
            self._committing = None

    def _start_again(self, active: ActiveController | None) -> None:
        """Forget what is not in the log, and whatever rested on it."""
        if active is None or active.is_dropped:
            return
        self.active = self._new_active(active.epoch)
        active.drop(
            Refusal(
                ErrorCode.KAFKA_STORAGE_ERROR,
                "The disk that holds the metadata log is full: free some space, then retry.",
            )
        )
        if self.on_began is not None:
            self.on_began()

    def _new_active(self, epoch: int) -> ActiveController:
        told = Told(self._work.set, self.shell.log_grew, self.shell.log_synced)
        committed = self.committed_image.image
        return ActiveController(self._env, self._log, self._settings, committed, epoch, told)
