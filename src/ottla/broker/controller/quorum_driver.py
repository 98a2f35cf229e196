"""Drives the metadata log of this node: takes part in the quorum, decides, publishes the image.

Where this node leads: append, sync, and once a majority has it apply to the committed image, tell
the subscribers, answer. Where it does not, requests go to the node that does, and the image grows
by what was fetched and is committed. A full disk refuses decisions until there is room; any other
failure of the log ends `run`, and the process.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.broker.controller.active_controller import ActiveController, Told
from ottla.broker.controller.channel import ControllerChannel
from ottla.broker.controller.committed_image import CommittedImage
from ottla.broker.controller.metadata_checks import check_version, check_voters
from ottla.broker.controller.metadata_log import MetadataLog, MetadataLogSettings
from ottla.broker.controller.quorum_shell import QuorumShell
from ottla.env import network
from ottla.env.environment import Environment
from ottla.env.errnos import PASSING
from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.features import KRAFT_VERSION, advertised, raised_alone
from ottla.metadata.image.image import ClusterImage
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Monotonic, NodeId, Offset
from ottla.protocol.control_records import QuorumControl
from ottla.protocol.messages import broker_heartbeat
from ottla.protocol.metadata_records import AbortTransactionRecord, MetadataRecord
from ottla.quorum.freshness import known_at
from ottla.quorum.machine import Quorum
from ottla.quorum.roles import Follower
from ottla.quorum.timing import Timing
from ottla.quorum.voters import Address, ReplicaKey
from ottla.storage.identity import NodeIdentity

logger = logging.getLogger(__name__)

Subscriber = Callable[[ImageDelta], None]


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    """This node's place among the controllers."""

    listener: str = "CONTROLLER"
    endpoints: Mapping[str, Address] = field(default_factory=dict)  # Where its own listens.
    bootstrap: Sequence[Address] = ()
    is_controller: bool = True
    timing: Timing = field(default_factory=Timing)


class QuorumDriver:
    def __init__(
        self,
        env: Environment,
        identity: NodeIdentity,
        controller_settings: ControllerSettings,
        log_settings: MetadataLogSettings,
        bootstrap: Sequence[MetadataRecord] = (),
        settings: QuorumSettings | None = None,
    ) -> None:
        """`bootstrap` are the first records of a new cluster, as formatting left them."""
        self.identity = identity
        self.log = MetadataLog(env, log_settings)
        self._committed = CommittedImage(identity.cluster_id, self.log)
        self._env = env
        self._settings = settings or QuorumSettings()
        self.quorum = Quorum(
            ReplicaKey(identity.node_id, identity.directory_id),
            identity.cluster_id,
            self.log,
            self.log.history,
            self.log.state,
            below=env.random.randrange,
            timing=self._settings.timing,
            listener=self._settings.listener,
            endpoints=self._settings.endpoints,
            bootstrap=self._settings.bootstrap,
            is_controller=self._settings.is_controller,
        )
        self.shell = QuorumShell(env, self.log, self.quorum, self)
        self.channel = ControllerChannel(env.network, env.clock, self.controller_address)
        # Heartbeats wait behind no other answer, and are sent again while the session lasts.
        self.heartbeats = ControllerChannel(
            env.network,
            env.clock,
            self.controller_address,
            answer_ms_max=controller_settings.broker_session_timeout_ms // 2,
        )
        self._controller_settings = controller_settings
        self._bootstrap = bootstrap
        self.on_began: Callable[[], None] | None = None  # Called when this node begins to lead.
        self._subscribers: list[Subscriber] = []
        self._active: ActiveController | None = None  # While this node leads.
        self._committing: asyncio.Future[None] | None = None
        self._forwarding: dict[asyncio.Task[None], None] = {}  # In the order in which they began.
        self._work = asyncio.Event()
        self._progress = asyncio.Event()
        self._failure: BaseException | None = None
        self._is_stopping = self._is_closed = False

    def open(self) -> None:
        """Read the newest snapshot and open the log. Blocks; Damaged says what is wrong.

        What a single voter has on disk is committed; others have to ask what is.
        """
        self._committed.load()
        if self.is_alone:
            self._committed.advance(self.log.end_offset)
        check_version(self.image, self.log.directory)
        check_voters(self.quorum, self.log.directory)
        self.image.take_delta()

    async def join(self) -> None:
        """Take part in the quorum, until the image is as new as that of the leader.

        A single voter leads at once, and settles what the log left open.
        """
        self.shell.loop = asyncio.get_running_loop()
        self.shell.happened(self.quorum.started)
        if not self.is_alone:
            logger.info("looking for the active controller")
        while True:
            self._progress.clear()
            await self.settle()
            if self.is_ready:
                return
            await self._progress.wait()

    @property
    def image(self) -> ClusterImage:
        """The cluster, as far as it is committed."""
        return self._committed.image

    @property
    def is_ready(self) -> bool:
        """Whether this node has known the cluster as its leader does."""
        return self.known_at is not None and bool(self.image.metadata_version)

    @property
    def known_at(self) -> Monotonic | None:
        """The image has all that was committed by then; None where that cannot be told."""
        return known_at(self.quorum, self._env.clock.monotonic())

    @property
    def is_alone(self) -> bool:
        """Whether this node is the only voter: what it has on disk is committed."""
        return self.quorum.is_voter and self.quorum.voters.is_alone

    @property
    def voter_count(self) -> int:
        return len(self.quorum.voters.by_id)

    @property
    def is_leader(self) -> bool:
        return self._active is not None

    @property
    def leader_epoch(self) -> int:
        return self.quorum.state.epoch

    @property
    def finalized_features(self) -> dict[str, int]:
        """The levels that clients may rely on; that of the quorum is in its own records."""
        features = advertised(self.image.features)
        if self.quorum.kraft_version:
            features[KRAFT_VERSION] = self.quorum.kraft_version
        return features

    def silent_brokers(self, silent_ms: Millis) -> list[NodeId]:
        """Who should have been heard by this controller, if it is the active one."""
        if self._active is None:
            return []
        return self._active.controller.silent_brokers(self._env.clock.monotonic(), silent_ms)

    def subscribe(self, subscriber: Subscriber) -> None:
        """`subscriber` hears of each change once it is in `image`, before anyone is answered."""
        self._subscribers.append(subscriber)

    async def submit(self, request: object) -> Any:  # noqa: ANN401
        """The active controller's response, once committed; raises the Refusal it gives instead."""
        while True:
            if self._active is None:
                channel = self.channel
                if isinstance(request, broker_heartbeat.Request):
                    channel = self.heartbeats
                response = await channel.ask(request, lambda: self._active is not None)
                if response is not None:
                    return response
            try:
                return await self.decide(request)
            except Refusal as refusal:
                if refusal.code != ErrorCode.NOT_CONTROLLER or self._is_closed:
                    raise  # Else the next leader is asked.

    async def decide(self, request: object) -> Any:  # noqa: ANN401
        """Like `submit`, but NOT_CONTROLLER where another node decides."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answer(reply: object) -> None:
            if answered.done():  # Whoever asked has gone.
                return
            if isinstance(reply, Refusal):
                answered.set_exception(reply)
            else:
                answered.set_result(reply)

        self._decide(request, answer)
        return await answered

    def ask(self, request: object, on_reply: Callable[[Any], None]) -> None:
        """Like `submit`, for those who cannot wait: `on_reply` gets the response or a Refusal."""
        if self._active is not None:
            self._decide(request, on_reply)
            return
        task = asyncio.get_running_loop().create_task(self._forward(request, on_reply))
        self._forwarding[task] = None
        task.add_done_callback(self._forwarding.pop)

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

        A write that has begun goes on even if whoever waits for it is cancelled: between the
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
        return self._active is not None and bool(self._active.pending)

    def stop(self) -> None:
        """`run` ends after what is pending."""
        self._is_stopping = True
        self._work.set()

    async def hand_over(self, timeout_ms: Millis) -> None:
        """Before a clean stop: another voter should lead soon."""
        self.shell.happened(self.quorum.resign)  # Nothing happens where it does not lead.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self.shell.settle()
                while not self.quorum.has_told_all:
                    self._progress.clear()
                    await self._progress.wait()

    def close(self) -> None:
        """After `settle`, when nobody asks any more."""
        self._let_go()
        self.log.close()

    async def abandon(self) -> None:
        """Let go of the files as they are, once no worker has them any more."""
        self._let_go()
        if self._committing is not None:
            await asyncio.wait([self._committing])
        self.log.abandon()

    def _let_go(self) -> None:
        self._is_closed = True
        self.shell.close()
        self.channel.close()
        self.heartbeats.close()
        for task in self._forwarding:
            task.cancel()
        if self._active is not None:
            self._active.drop(Refusal(ErrorCode.NOT_CONTROLLER))

    async def snapshot_if_due(self) -> None:
        """Also for whoever keeps house: a snapshot may be due by time alone."""
        if self._committing is not None or self.image.is_in_transaction:
            return  # Between two batches of a commit the image is not whole; `run` comes back.
        if not self.log.is_snapshot_due():
            return
        try:
            await self.log.write_snapshot(self.image.frozen())
        except OSError as error:
            if error.errno not in PASSING:
                raise
            logger.error("no snapshot of the metadata log can be written now: %s", error)

    async def wait_written(self) -> None:
        if self._committing is not None:
            await asyncio.wait([self._committing])

    def began(self, epoch: int) -> None:
        """This node leads: settle what the log left open."""
        active = self._active = self._new_active(epoch)
        image = active.controller.image
        if image.is_in_transaction:
            active.write_records([AbortTransactionRecord(reason="The controller was restarted.")])
        if not image.metadata_version:
            active.write_records(list(self._bootstrap))
        if self.is_alone and (raised := raised_alone(image.features)):
            active.write_records(raised)
        if self.on_began is not None:
            self.on_began()

    def ended(self, epoch: int) -> None:
        logger.info("this controller is not the active one any more, after epoch %d", epoch)
        active, self._active = self._active, None
        if active is not None:
            active.drop(Refusal(ErrorCode.NOT_CONTROLLER))

    def write_control(self, records: tuple[QuorumControl, ...]) -> None:
        if self._active is not None:
            self._active.write_controls(records)

    def committed(self, high_watermark: Offset) -> None:
        """Fold all below it into the image, act on it, then answer."""
        own = list(self._active.written) if self._active is not None else []
        self._publish(self._committed.advance(high_watermark, own))
        self.log.history.committed(self.image.offset + 1)
        if self._active is not None:
            self._active.committed(high_watermark)
        self._work.set()

    def snapshot_installed(self) -> None:
        self._publish(self._committed.replace())

    def acted(self) -> None:
        self.channel.leader_changed()
        self.heartbeats.leader_changed()
        self._progress.set()

    def failed(self, error: BaseException) -> None:
        self._failure = error
        self._work.set()
        self._progress.set()

    def _publish(self, delta: ImageDelta) -> None:
        for subscriber in self._subscribers:
            subscriber(delta)

    def _decide(self, request: object, on_reply: Callable[[Any], None]) -> None:
        if self._active is None:
            on_reply(Refusal(ErrorCode.NOT_CONTROLLER))
        else:
            self._active.submit(request, on_reply)

    async def _forward(self, request: object, on_reply: Callable[[Any], None]) -> None:
        try:
            reply = await self.submit(request)
        except Refusal as refusal:
            reply = refusal
        on_reply(reply)

    async def _write(self) -> None:
        active = self._active
        try:
            if active is None:
                return  # Its epoch has ended since, and those who waited were told.
            await active.write()
        except OSError as error:
            if error.errno not in PASSING or self.image.is_in_transaction:
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
        self._active = self._new_active(active.epoch)
        active.drop(
            Refusal(
                ErrorCode.KAFKA_STORAGE_ERROR,
                "The disk that holds the metadata log is full: free some space, then retry.",
            )
        )

    def _new_active(self, epoch: int) -> ActiveController:
        told = Told(self._work.set, self.shell.log_grew, self.shell.log_synced)
        return ActiveController(
            self._env, self.log, self._controller_settings, self.image, epoch, told
        )

    def controller_address(self) -> network.Address | None:
        role = self.quorum.role
        return network.Address(*role.address) if isinstance(role, Follower) else None
