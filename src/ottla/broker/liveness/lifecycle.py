"""This broker's life as the controller sees it: registered, unfenced, and which disks it lost.

The requests are those of Kafka's brokers; `QuorumDriver.submit` finds the active controller, which
may be in this very process. Where it is always there, nobody needs heartbeats.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from ottla.broker.liveness.context import LivenessContext
from ottla.broker.liveness.own_session import OwnSession
from ottla.broker.partitions.log_directories import LogDirectories
from ottla.metadata.image.delta import ImageDelta
from ottla.metadata.image.features import SUPPORTED, has_controller_registration
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.types import Millis, Uuid
from ottla.protocol.messages import (
    broker_heartbeat,
    broker_registration,
    controller_registration,
)

logger = logging.getLogger(__name__)

PLAINTEXT = 0
RETRY_SECONDS: Final = 1.0
ASK_AGAIN_SECONDS: Final = 0.05
HAND_OVER_MS_MAX: Final[Millis] = 10_000
ANSWER_SECONDS_MAX: Final = 2.0
NO_CONTROLLER_SECONDS_MAX: Final = 2.0
# Another incarnation of this broker counts as alive until its session ends, or nobody answers.
NOT_YET: Final = frozenset(
    {
        ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class LostReplicas(Protocol):
    """Tells the controller what this broker lost of what it had."""

    def tell_all(self) -> None:
        """The controller knows of a directory that failed: say what lay there."""

    async def give_up(self, broker_epoch: int) -> bool:
        """What the process of that epoch left damaged; False if that cannot be noted."""


class Lifecycle:
    def __init__(
        self,
        context: LivenessContext,
        directories: LogDirectories,
        replicas: LostReplicas,
    ) -> None:
        self.broker_epoch = -1
        self._context = context
        self._directories = directories
        self._replicas = replicas
        # After this broker was unregistered while it lives: what names its epoch had to wait.
        self.on_registered_again: Callable[[], None] = lambda: None
        self._incarnation_id: Uuid = b""
        self.session = OwnSession(context)

    @property
    def is_registered(self) -> bool:
        return self.broker_epoch >= 0

    @property
    def may_be_fenced(self) -> bool:
        return self.session.may_be_fenced

    async def register(self) -> None:
        """Tell the controller where we are; from the answer on we lead our partitions."""
        await self._register()
        self._context.spawn(self._keep_alive())

    def image_changed(self, delta: ImageDelta) -> None:
        """Register again if this broker was unregistered; be heard while another one stops.

        The controller hands partitions over only to brokers that have read that another stops.
        """
        me = self._context.node_id
        brokers = self._context.image.brokers.values()
        if any(broker.in_controlled_shutdown and not broker.is_fenced for broker in brokers):
            self._context.quorum.requests.heartbeats.moved.set()
        if self.is_registered and me in delta.brokers and me not in self._context.image.brokers:
            logger.warning("this broker was unregistered, and registers again")
            self.broker_epoch = -1
            self._context.spawn(self._register_again())

    async def _register_again(self) -> None:
        await self._register()
        self.on_registered_again()

    async def _register(self) -> None:
        previous = self._directories.identities.previous_broker_epoch
        if previous >= 0 and not await self._replicas.give_up(previous):
            previous = -1  # As after a loss of power: nothing that we had is counted on.
        self._incarnation_id = self._context.env.random.randbytes(16)
        request = broker_registration.Request(
            broker_id=self._context.node_id,
            cluster_id=self._context.image.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=self._listeners(),
            features=[
                broker_registration.Feature(name, levels.min_version, levels.max_version)
                for name, levels in SUPPORTED.items()
            ],
            rack=self._context.settings.broker_rack,
            log_dirs=self._directories.identities.directory_ids(),
            previous_broker_epoch=previous,
        )
        response = await self._insist(request)
        self.broker_epoch = response.broker_epoch
        self._directories.note_broker_epoch(self.broker_epoch)
        while True:  # Until we have read that we are registered.
            if not (await self.heartbeat()).is_fenced:
                break
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def register_controller(self) -> None:
        """The controller beside this broker is a node of its own, with its own listeners."""
        if not has_controller_registration(self._context.image.metadata_version):
            return
        await self._insist(
            controller_registration.Request(
                controller_id=self._context.node_id,
                incarnation_id=self._context.env.random.randbytes(16),
                listeners=[
                    controller_registration.Listener(
                        endpoint.name,
                        endpoint.host or self._context.addresses[endpoint.name].host,
                        endpoint.port or self._context.addresses[endpoint.name].port,
                        PLAINTEXT,
                    )
                    for endpoint in self._context.settings.controller_listeners
                ],
                features=[
                    controller_registration.Feature(name, *levels)
                    for name, levels in SUPPORTED.items()
                ],
            )
        )

    async def hand_over(self) -> None:
        """Before this broker closes its doors: others lead what it led."""
        try:
            async with asyncio.timeout(HAND_OVER_MS_MAX / 1000):
                while True:
                    if await self._may_stop():
                        return
                    await asyncio.sleep(ASK_AGAIN_SECONDS)
        except (TimeoutError, Refusal) as error:
            logger.warning(
                "stopping without handing over: %s", str(error) or "nobody to hand over to"
            )

    async def shut_down(self) -> None:
        """Hand our partitions back, so that whoever opens these directories next need not wait."""
        for _ in range(2):  # First it hands over, then it is let go.
            self._context.quorum.requests.decide(self._stop_request())
            await self._context.quorum.commits.settle()

    async def tell_offline(self) -> None:
        """Tell of the directories that are lost, until it is written down: its disk may be full."""
        while True:
            try:
                await self.heartbeat()
            except Refusal as refusal:
                logger.warning("the controller cannot note a lost log directory yet: %s", refusal)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                # Of what lay there, the controller may not have heard that it did.
                self._replicas.tell_all()
                return

    async def heartbeat(self) -> broker_heartbeat.Response:
        request = broker_heartbeat.Request(
            broker_id=self._context.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._context.image.offset,
            offline_log_dirs=list(self._directories.identities.offline_ids()),
        )
        sent_at = self.session.now()
        response = await self._context.submit(request)
        assert isinstance(response, broker_heartbeat.Response), "the controller answers in kind"
        self.session.answered(sent_at)
        return response

    async def _keep_alive(self) -> None:
        """Heartbeat loop; sends the next heartbeat immediately when fenced, or asked for one.

        A new controller hears us at once: it may rely on us only then. A single voter sends no
        others, once such a heartbeat was answered: nobody would count its session.
        """
        interval = self._context.settings.broker_heartbeat_interval_ms / 1000
        quorum = self._context.quorum
        moved = quorum.requests.heartbeats.moved
        is_asked = False
        while True:
            is_fenced, is_asked = False, is_asked or moved.is_set()
            moved.clear()
            try:
                if is_asked or not quorum.is_alone:
                    is_asked = is_fenced = (await self.heartbeat()).is_fenced
            except Refusal as refusal:
                logger.warning("the controller does not take our heartbeat: %s", refusal)
            with suppress(TimeoutError):
                async with asyncio.timeout(ASK_AGAIN_SECONDS if is_fenced else interval):
                    await moved.wait()

    async def _insist(self, request: Any) -> Any:  # noqa: ANN401
        """Ask until it is granted; what time cannot heal is raised."""
        while True:
            try:
                return await self._context.submit(request)
            except Refusal as refusal:
                if refusal.code not in NOT_YET or self._context.quorum.is_alone:
                    raise
                logger.info("the controller does not register this node yet: %s", refusal)
            await asyncio.sleep(ASK_AGAIN_SECONDS * 4)

    async def _may_stop(self) -> bool:
        """Whether others lead what we led. With no controller left, nobody will ever say so."""
        quorum = self._context.quorum
        try:
            async with asyncio.timeout(NO_CONTROLLER_SECONDS_MAX):
                response = await quorum.requests.submit(self._stop_request())
        except TimeoutError:
            if quorum.is_leader or quorum.requests.controller_address() is not None:
                return False
            raise
        assert isinstance(response, broker_heartbeat.Response), "the controller answers in kind"
        return response.should_shut_down

    def _stop_request(self) -> broker_heartbeat.Request:
        return broker_heartbeat.Request(
            broker_id=self._context.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._context.image.offset,
            want_shut_down=True,
        )

    def _listeners(self) -> list[broker_registration.Listener]:
        """Advertised addresses; a port that the system chose is known by now."""
        return [
            broker_registration.Listener(
                endpoint.name,
                endpoint.host,
                endpoint.port or self._context.addresses[endpoint.name].port,
                PLAINTEXT,
            )
            for endpoint in self._context.settings.advertised_listeners
            if endpoint.name not in self._context.settings.controller_listener_names
        ]
