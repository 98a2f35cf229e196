"""Drives the metadata log of this node: loads it, leads it, writes decisions, publishes the image.

Append, sync, apply to the committed image, tell the subscribers, answer: in this order, for all
decisions that gathered while the last sync ran. `image` holds only what is committed. A full disk
refuses decisions until there is room; any other failure of the log ends `run`, and the process.
"""

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from ottla.broker.machine_host import MachineHost
from ottla.broker.metadata_log import FormatRefused, MetadataLog, MetadataLogSettings
from ottla.env.environment import Environment
from ottla.metadata.batches import as_transaction, data_batches, encoded
from ottla.metadata.controller import Controller
from ottla.metadata.decisions import ControllerSettings
from ottla.metadata.delta import ImageDelta
from ottla.metadata.features import (
    KRAFT_VERSION,
    METADATA_VERSION_MAX,
    METADATA_VERSION_MIN,
    METADATA_VERSIONS,
    advertised,
    kept_but_not_served,
    raised_alone,
)
from ottla.metadata.ids import new_uuid
from ottla.metadata.image import ClusterImage, InconsistentRecord
from ottla.metadata.snapshot import records_of
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import NodeId, Offset, Uuid
from ottla.protocol.metadata_records import AbortTransactionRecord, MetadataRecord

logger = logging.getLogger(__name__)

Subscriber = Callable[[ImageDelta], None]

_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this node is, as its directories say."""

    node_id: NodeId
    cluster_id: str
    directory_id: Uuid  # Of the directory that holds the metadata log.


class _Pending(NamedTuple):
    base_offset: Offset
    records: Sequence[MetadataRecord]
    values: Sequence[bytes]


class QuorumDriver:
    def __init__(
        self,
        env: Environment,
        identity: Identity,
        controller_settings: ControllerSettings,
        log_settings: MetadataLogSettings,
        bootstrap: Sequence[MetadataRecord] = (),
    ) -> None:
        """`bootstrap` are the first records of a new cluster, as formatting left them."""
        self.identity = identity
        self.image = ClusterImage(identity.cluster_id)
        self.log = MetadataLog(env, identity.node_id, identity.directory_id, log_settings)
        self._env = env
        self._controller_settings = controller_settings
        self._bootstrap = bootstrap
        self._subscribers: list[Subscriber] = []
        self._controller = self._new_controller()
        self._host: MachineHost[object, MetadataRecord, Any]
        self._next_offset: Offset = 0
        self._pending: list[_Pending] = []
        self._committing: asyncio.Future[None] | None = None
        self._work = asyncio.Event()
        self._is_stopping = False

    def open(self) -> None:
        """Read the newest snapshot and the log after it. Blocks; Damaged says what is wrong."""
        try:
            for offset, record in self.log.load():
                self._controller.apply(offset, record)
                self.image.apply(offset, record)
        except InconsistentRecord as error:
            what = f"after offset {self.image.offset} {error}"
            raise Damaged(self.log.directory, 0, what) from error
        self._check_version()
        self._passed_controls()
        self.image.take_delta()
        self._controller.image.take_delta()

    async def lead(self) -> None:
        """Stand for election, which the only voter wins, and settle what the log left open."""
        await self.log.begin_epoch(self._env.clock.wall())
        self._passed_controls()
        self._host = self._new_host()
        if self._controller.image.is_in_transaction:
            self._write([AbortTransactionRecord(reason="The controller was restarted.")])
        if not self._controller.image.metadata_version:
            self._write(list(self._bootstrap))
        raised = raised_alone(self._controller.image.features)
        if raised:
            self._write(raised)
        await self.settle()

    @property
    def is_leader(self) -> bool:
        return self.log.quorum.is_leader

    @property
    def leader_epoch(self) -> int:
        return self.log.quorum.state.epoch

    @property
    def high_watermark(self) -> Offset:
        """With one voter all that is synced is committed."""
        return self.image.offset + 1

    @property
    def finalized_features(self) -> dict[str, int]:
        """The levels that clients may rely on; that of the quorum is in its own records."""
        features = advertised(self.image.features)
        if self.log.quorum.kraft_version:
            features[KRAFT_VERSION] = self.log.quorum.kraft_version
        return features

    def subscribe(self, subscriber: Subscriber) -> None:
        """`subscriber` hears of each change once it is in `image`, before anyone is answered."""
        self._subscribers.append(subscriber)

    async def submit(self, request: object) -> Any:  # noqa: ANN401
        """The controller's response, once it is committed; raises the Refusal it gives instead."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(reply: object) -> None:
            if answered.done():  # Whoever asked has gone.
                return
            if isinstance(reply, Refusal):
                answered.set_exception(reply)
            else:
                answered.set_result(reply)

        self.ask(request, answer)
        return await answered

    def ask(self, request: object, on_reply: Callable[[Any], None]) -> None:
        """Like `submit`, for those who cannot wait: `on_reply` gets the response or a Refusal."""
        self._host.submit(request, on_reply)

    async def run(self) -> None:
        """Commit what is decided, until `stop`; whatever it raises is the end of this node."""
        while self._pending or not self._is_stopping:
            if not self._pending:
                self._work.clear()
                await self._work.wait()
            await self.settle()
            await self.snapshot_if_due()

    async def settle(self) -> None:
        """Commit what is decided so far: the work of `run`, and of a start before `run`.

        A commit that has begun goes on even if whoever waits for it is cancelled: between the
        file and the image there is no half.
        """
        while self._pending or self._committing is not None:
            if self._committing is None:
                self._committing = asyncio.ensure_future(self._commit())
            committing = self._committing
            try:
                await asyncio.shield(committing)
            finally:
                if committing.done():
                    self._committing = None

    def stop(self) -> None:
        """`run` ends after what is pending."""
        self._is_stopping = True
        self._work.set()

    def close(self) -> None:
        """After `settle`, when nobody asks any more."""
        self.log.close()

    async def abandon(self) -> None:
        """Let go of the files as they are, once no worker has them any more."""
        if self._committing is not None:
            await asyncio.wait([self._committing])
        self.log.abandon()

    async def snapshot_if_due(self) -> None:
        """Also for whoever keeps house: a snapshot may be due by time alone."""
        if self._committing is not None or self.image.is_in_transaction:
            return  # Between two batches of a commit the image is not whole; `run` comes back.
        if not self.log.is_snapshot_due():
            return
        try:
            await self.log.write_snapshot(self.image.frozen())
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            logger.error("no room for a snapshot of the metadata log: %s", error)

    async def _commit(self) -> None:
        """Write all that is pending, one batch at a time.

        Each is synced before the next is written: so after a power cut only the last batch can be
        torn, and damage before it is never mistaken for that.
        """
        pending, self._pending = self._pending, []
        now = self._env.clock.wall()
        records = iter([record for decision in pending for record in decision.records])
        decisions = [decision.values for decision in pending]
        for batch in data_batches(decisions, pending[0].base_offset, self.leader_epoch, now):
            offset = self.log.end_offset
            try:
                self.log.append(batch, now)
            except OSError as error:
                if error.errno not in _DISK_FULL or self.image.is_in_transaction:
                    raise
                self._publish()
                self._start_again(error)
                return
            await self.log.sync()
            while offset < self.log.end_offset:
                self.image.apply(offset, next(records))
                offset += 1
        self._publish()

    def _publish(self) -> None:
        """All that is in the image is committed: act on it, then answer."""
        delta = self.image.take_delta()
        for subscriber in self._subscribers:
            subscriber(delta)
        self._host.committed(self.image.offset + 1)

    def _append(self, records: list[MetadataRecord]) -> tuple[Offset, list[MetadataRecord]]:
        """Give a decision its offsets and its bytes; `_commit` writes them."""
        version = self._controller.image.metadata_version
        records = as_transaction(records, version)
        base = self._next_offset
        self._pending.append(_Pending(base, records, encoded(records, version)))
        self._next_offset = base + len(records)
        self._work.set()
        return base, records

    def _write(self, records: list[MetadataRecord]) -> None:
        """A decision of the driver's own."""
        base, written = self._append(records)
        for offset, record in enumerate(written, base):
            self._controller.apply(offset, record)

    def _start_again(self, error: OSError) -> None:
        """Forget what is not in the log, and whatever rested on it."""
        logger.error("the metadata log cannot be written: %s", error)
        self._pending.clear()
        host = self._host
        self._controller = self._new_controller()
        for record in records_of(self.image):
            self._controller.apply(self.image.offset, record)
        self._passed_controls()
        self._host = self._new_host()
        host.drop(
            Refusal(
                ErrorCode.KAFKA_STORAGE_ERROR,
                "The disk that holds the metadata log is full: free some space, then retry.",
            )
        )

    def _new_controller(self) -> Controller:
        random = self._env.random
        return Controller(
            self.identity.cluster_id,
            self._controller_settings,
            below=random.randrange,
            new_uuid=lambda: new_uuid(random.randbytes),
        )

    def _new_host(self) -> MachineHost[object, MetadataRecord, Any]:
        return MachineHost(self._controller, self._append, self._env.clock, self._next_offset)

    def _passed_controls(self) -> None:
        """Control records are the quorum's: the machines only count past them."""
        self._next_offset = self.log.end_offset
        self.image.offset = self._next_offset - 1
        self._controller.passed(self._next_offset - 1)

    def _check_version(self) -> None:
        version = self.image.metadata_version
        if version and not METADATA_VERSION_MIN <= version <= METADATA_VERSION_MAX:
            bound = "at most" if version > METADATA_VERSION_MAX else "at least"
            level = METADATA_VERSION_MAX if version > METADATA_VERSION_MAX else METADATA_VERSION_MIN
            raise FormatRefused(
                f"{self.log.directory} has metadata.version {version}, but this Ottla opens "
                f"{bound} {level} ({METADATA_VERSIONS[level]})."
            )
        unserved = kept_but_not_served(self.image.features)
        if unserved:
            named = ", ".join(f"{name} {level}" for name, level in sorted(unserved.items()))
            logger.warning("kept in the metadata log, but not served by this Ottla yet: %s", named)
