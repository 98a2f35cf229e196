"""A quorum driver on a simulated disk, without the broker around it."""

# ruff: noqa: ANN401  Requests and responses are of whatever class their API has.

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

from ottla.broker.controller.metadata_log_settings import MetadataLogSettings
from ottla.broker.controller.quorum_driver import QuorumDriver
from ottla.broker.node.directory_format import Format, bootstrap_records, format_directories
from ottla.env.environment import Environment
from ottla.env.workers import InlineWorkers
from ottla.metadata.decisions.context import ControllerSettings
from ottla.metadata.image.features import SUPPORTED
from ottla.model.types import Monotonic, NodeId, WallTime
from ottla.protocol.messages import (
    broker_heartbeat,
    broker_registration,
    create_topics,
    delete_topics,
)
from ottla.quorum.voters import Address
from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.identity import NodeIdentity, read_meta
from tests.answers import outcome

CLUSTER = "aZSxcrjtRrO_dWhnyP37Bw"
ONE = NodeId(1)
LOG = "/data/__cluster_metadata-0"
SEGMENT = f"{LOG}/{0:020d}.log"
WALL_MS = 1_700_000_000_000


class Clock:
    """Goes on only when told to."""

    def __init__(self) -> None:
        self.now_ms = 0

    def monotonic(self) -> Monotonic:
        return Monotonic(self.now_ms)

    counting_sleep = monotonic

    def wall(self) -> WallTime:
        return WallTime(WALL_MS + self.now_ms)


class Node:
    """One node's disk, and the drivers that open it one after the other."""

    def __init__(self, seed: int = 0, **settings: Any) -> None:
        self.disk = SimulatedDisk(Random(f"disk/{seed}"))
        self.disk.now_ms = WALL_MS
        self.clock = Clock()
        self.random = Random(f"node/{seed}")
        self.env = Environment(
            self.clock,
            self.disk,
            None,  # type: ignore[arg-type]  # Nothing of this speaks to anybody.
            InlineWorkers(),
            self.random,
        )
        self.settings = MetadataLogSettings("/data", **settings)
        self.broker_epoch = -1

    def format(self, **change: Any) -> None:
        fields: dict[str, Any] = {
            "cluster_id": CLUSTER,
            "node_id": ONE,
            "directories": ["/data"],
            "metadata_directory": "/data",
            "standalone_at": {"CONTROLLER": Address("h", 9093)},
        }
        wanted = Format(**(fields | change))
        format_directories(self.disk, wanted, self.clock.wall(), self.random.randbytes)

    def driver(self) -> QuorumDriver:
        meta = read_meta(self.disk, "/data")
        assert meta is not None
        assert meta.directory_id is not None
        return QuorumDriver(
            self.env,
            NodeIdentity(ONE, meta.cluster_id, meta.directory_id),
            ControllerSettings(ONE),
            self.settings,
            bootstrap_records(self.disk, "/data", isr_min=1),
        )

    async def started(self) -> QuorumDriver:
        """Loaded, leading, with this node's broker registered and unfenced."""
        driver = self.driver()
        driver.open()
        await driver.join()
        response = await asked(
            driver,
            broker_registration.Request(
                broker_id=ONE,
                cluster_id=CLUSTER,
                incarnation_id=self.random.randbytes(16),
                features=[broker_registration.Feature(n, *r) for n, r in SUPPORTED.items()],
                log_dirs=[driver.identity.directory_id],
            ),
        )
        self.broker_epoch = response.broker_epoch
        offset = driver.image.offset
        await asked(driver, broker_heartbeat.Request(ONE, self.broker_epoch, offset))
        return driver

    async def stopped(self, driver: QuorumDriver) -> None:
        request = broker_heartbeat.Request(
            ONE, self.broker_epoch, driver.image.offset, want_shut_down=True
        )
        for _ in range(2):
            await asked(driver, request)
        driver.close()


async def asked(driver: QuorumDriver, request: Any) -> Any:
    """Ask, and commit what was decided, where nobody runs the driver."""
    answer = driver.requests.decide(request)
    await driver.commits.settle()
    return outcome(answer)


async def created(driver: QuorumDriver, name: str, partitions: int = 1) -> Any:
    topic = create_topics.CreatableTopic(name, partitions, 1)
    return await asked(driver, create_topics.Request([topic]))


async def deleted(driver: QuorumDriver, name: str) -> Any:
    return await asked(driver, delete_topics.Request([delete_topics.DeleteTopicState(name)]))


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def formatted(**settings: object) -> Node:
    node = Node(**settings)
    node.format()
    return node


def names(driver: QuorumDriver) -> list[str]:
    return sorted(driver.image.topics_by_name)
