"""This broker's life as the controller sees it: registered, unfenced, and which disks it lost.

The requests are those that brokers of a cluster send; here the controller is in the same process.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.metadata.features import SUPPORTED, has_controller_registration
from ottla.model.errors import Refusal
from ottla.model.types import Uuid
from ottla.protocol.messages import (
    broker_heartbeat,
    broker_registration,
    controller_registration,
)

if TYPE_CHECKING:
    from ottla.broker.server import Broker

logger = logging.getLogger(__name__)

PLAINTEXT = 0
RETRY_SECONDS: Final = 1.0


class Lifecycle:
    def __init__(self, broker: "Broker") -> None:
        self.broker_epoch = -1
        self._broker = broker

    @property
    def is_registered(self) -> bool:
        return self.broker_epoch >= 0

    async def register(self) -> None:
        """Tell the controller where we are; from the answer on we lead our partitions."""
        broker = self._broker
        request = broker_registration.Request(
            broker_id=broker.node_id,
            cluster_id=broker.image.cluster_id,
            incarnation_id=broker.env.random.randbytes(16),
            listeners=self._listeners(),
            features=[
                broker_registration.Feature(name, levels.min_version, levels.max_version)
                for name, levels in SUPPORTED.items()
            ],
            rack=broker.settings.broker_rack,
            log_dirs=broker.directories.ids(),
            previous_broker_epoch=broker.directories.previous_broker_epoch,
        )
        response = await broker.quorum.submit(request)
        self.broker_epoch = response.broker_epoch
        await self.heartbeat(broker.directories.offline_ids())

    async def register_controller(self) -> None:
        """The controller beside this broker is a node of its own, with its own listeners."""
        broker = self._broker
        if not has_controller_registration(broker.image.metadata_version):
            return
        await broker.quorum.submit(
            controller_registration.Request(
                controller_id=broker.node_id,
                incarnation_id=broker.env.random.randbytes(16),
                listeners=[
                    controller_registration.Listener(
                        endpoint.name,
                        endpoint.host or broker.addresses[endpoint.name].host,
                        endpoint.port or broker.addresses[endpoint.name].port,
                        PLAINTEXT,
                    )
                    for endpoint in broker.settings.controller_listeners
                ],
                features=[
                    controller_registration.Feature(name, *levels)
                    for name, levels in SUPPORTED.items()
                ],
            )
        )

    async def shut_down(self) -> None:
        """Hand our partitions back, so that whoever opens these directories next need not wait."""
        request = broker_heartbeat.Request(
            broker_id=self._broker.node_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._broker.image.offset,
            want_shut_down=True,
        )
        for _ in range(2):  # First it hands over, then it is let go.
            self._broker.quorum.ask(request, lambda _: None)
            await self._broker.quorum.settle()

    async def tell_offline(self) -> None:
        """Tell of the directories that are lost, until it is written down: its disk may be full."""
        while True:
            try:
                await self.heartbeat(self._broker.directories.offline_ids())
            except Refusal as refusal:
                logger.warning("the controller cannot note a lost log directory yet: %s", refusal)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def heartbeat(self, offline: tuple[Uuid, ...] = ()) -> None:
        await self._broker.quorum.submit(
            broker_heartbeat.Request(
                broker_id=self._broker.node_id,
                broker_epoch=self.broker_epoch,
                current_metadata_offset=self._broker.image.offset,
                offline_log_dirs=list(offline),
            )
        )

    def _listeners(self) -> list[broker_registration.Listener]:
        """Advertised addresses; a port that the system chose is known by now."""
        broker = self._broker
        return [
            broker_registration.Listener(
                endpoint.name,
                endpoint.host,
                endpoint.port or broker.addresses[endpoint.name].port,
                PLAINTEXT,
            )
            for endpoint in broker.settings.advertised_listeners
            if endpoint.name not in broker.settings.controller_listener_names
        ]
