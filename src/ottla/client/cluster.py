"""The cluster as a client sees it: who leads what, and an open connection to each broker asked.

Metadata is fetched when something is not known, or was found to be wrong; nothing runs in the
background. Retries are bounded: by `deadline_ms`, and by what an error says about retrying.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ottla.client.connection import Connection
from ottla.client.dialer import Dialer
from ottla.client.errors import CannotConnect, ClientError, Refused
from ottla.client.metadata import Metadata, Topic, UnknownTopic
from ottla.env.clock import Clock
from ottla.env.network import Address, Network
from ottla.model.errors import ErrorCode
from ottla.model.types import Millis, NodeId, TopicPartition
from ottla.protocol.messages import metadata as wire

Value = TypeVar("Value")

AUTO_CREATE_MS_MAX = 5_000  # A broker that does not create topics says no each time it is asked.


@dataclass(frozen=True, slots=True)
class ClientSettings:
    client_id: str = "ottla"
    connect_ms_max: Millis = 5_000
    request_ms_max: Millis = 30_000
    deadline_ms: Millis = 60_000  # For an operation with all of its retries.
    backoff_ms: Millis = 50
    backoff_ms_max: Millis = 1_000


class Cluster:
    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        network: Network,
        clock: Clock,
        source: random.Random,
        settings: ClientSettings | None = None,
    ) -> None:
        assert bootstrap, "a client needs an address to begin with"
        self.settings = settings or ClientSettings()
        self.clock = clock
        self.random = source
        self.metadata = Metadata()
        self._has_doubts = False  # A broker was not where the metadata says.
        self.on_trouble: Callable[[ClientError], None] = _nothing  # Told what is tried again.
        self._bootstrap = list(bootstrap)
        self._network = network
        self._dialer = Dialer(self.settings.client_id)
        self._connections: dict[tuple[Address, object], Connection] = {}
        self._opening: dict[tuple[Address, object], asyncio.Lock] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def close_lane(self, lane: object) -> None:
        """End the connections that someone had for itself."""
        for key in [key for key in self._connections if key[1] is lane]:
            self._connections.pop(key).close()
            self._opening.pop(key, None)

    async def any_broker(self) -> Connection:
        """A connection to some broker: one that is open, else the first that answers."""
        for (_, lane), connection in self._connections.items():
            if connection.is_open and lane is None:
                return connection
        known = [node.address for node in self.metadata.nodes.values()]
        failure: ClientError | None = None
        for address in [*self._bootstrap, *known]:
            try:
                return await self._connect(address)
            except CannotConnect as error:
                failure = failure or error
        assert failure is not None, "there was at least one address"
        raise failure

    async def broker(self, node_id: NodeId, *, lane: object = None) -> Connection:
        """A connection to a broker; answers come in order, so whoever waits long has its lane."""
        if self._has_doubts or node_id not in self.metadata.nodes:
            await self.refresh()
        node = self.metadata.nodes.get(node_id)
        if node is None:
            raise CannotConnect(f"broker {node_id} is not part of the cluster, or is not running")
        try:
            return await self._connect(node.address, lane)
        except CannotConnect as failure:
            self._has_doubts = True
            if node.address in self._bootstrap:
                raise
            # Often a name that only the broker's own machine or network knows.
            advertised = f"{failure} (the address that broker {node_id} advertises)"
            raise type(failure)(advertised) from failure

    async def leader_id(self, topic_partition: TopicPartition) -> NodeId:
        topic = await self.topic(topic_partition.topic)
        try:
            return topic.leader(topic_partition.partition)
        except Refused:
            self.forget(topic.name)  # It has none now; the next attempt looks again.
            raise

    async def leader(self, topic_partition: TopicPartition) -> Connection:
        """A connection to the partition's leader."""
        node_id = await self.leader_id(topic_partition)
        try:
            return await self.broker(node_id)
        except CannotConnect:
            self.forget(topic_partition.topic)  # Another may lead it soon.
            raise

    async def controller(self) -> Connection:
        """A broker to which admin requests go; in KRaft each forwards them to the controller."""
        if self._has_doubts or self.metadata.controller_id not in self.metadata.nodes:
            await self.refresh()
        node_id = self.metadata.controller_id
        try:
            return await self.broker(node_id)
        except CannotConnect:
            return await self.any_broker()

    async def topic(self, name: str, *, may_create: bool = False) -> Topic:
        """What is known about a topic, asked for if nothing is."""
        known = self.metadata.topics.get(name)
        if known is not None:
            return known
        deadline_ms = AUTO_CREATE_MS_MAX if may_create else None
        return await self.retrying(lambda: self._fetch_topic(name, may_create), deadline_ms)

    async def refresh(self, topics: Sequence[str] | None = ()) -> None:
        """Fetch the brokers, and these topics; None means all topics."""
        connection = await self.any_broker()
        named = (
            None if topics is None else [wire.MetadataRequestTopic(name=name) for name in topics]
        )
        answer = await connection.ask(
            wire.Request(topics=named, allow_auto_topic_creation=False),
            wire.Response,
            timeout_ms=self.settings.request_ms_max,
        )
        self.metadata.update(answer)
        self._has_doubts = False

    def forget(self, topic: str) -> None:
        """What is known about a topic was found to be wrong."""
        self.metadata.topics.pop(topic, None)

    async def retrying(
        self, attempt: Callable[[], Awaitable[Value]], deadline_ms: Millis | None = None
    ) -> Value:
        """Do something until it succeeds, fails for good, or has taken too long.

        That nobody answers at all is told at once: a person who mistyped an address is waiting.
        """
        deadline = self.clock.monotonic() + (deadline_ms or self.settings.deadline_ms)
        tries = 0
        while True:
            try:
                return await attempt()
            except ClientError as error:
                wait_ms = self.backoff_ms(tries)
                is_too_late = self.clock.monotonic() + wait_ms > deadline
                if not error.is_retriable or is_too_late or not self.metadata.nodes:
                    raise
                self.on_trouble(error)
            tries += 1
            await asyncio.sleep(wait_ms / 1000)

    def backoff_ms(self, tries: int) -> Millis:
        """Twice as long each time, up to a limit, and never in step with other clients."""
        settings = self.settings
        longest = min(settings.backoff_ms << min(tries, 20), settings.backoff_ms_max)
        return int(longest * self.random.uniform(0.8, 1.2))

    async def _fetch_topic(self, name: str, may_create: bool) -> Topic:
        connection = await self.any_broker()
        answer = await connection.ask(
            wire.Request(
                topics=[wire.MetadataRequestTopic(name=name)], allow_auto_topic_creation=may_create
            ),
            wire.Response,
            timeout_ms=self.settings.request_ms_max,
        )
        self.metadata.update(answer)
        found = self.metadata.topics.get(name)
        if found is not None:
            return found
        code = answer.topics[0].error_code
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and not may_create:
            raise UnknownTopic(name)
        raise Refused(code, about=f"topic {name!r}")

    async def _connect(self, address: Address, lane: object = None) -> Connection:
        key = (address, lane)
        lock = self._opening.setdefault(key, asyncio.Lock())
        async with lock:  # Two who ask at once share one connection.
            connection = self._connections.get(key)
            if connection is None or not connection.is_open:
                connection = self._connections[key] = await self._dialer.dial(
                    self._network, address, timeout_ms=self.settings.connect_ms_max
                )
            return connection


def _nothing(_failure: ClientError) -> None:
    pass
