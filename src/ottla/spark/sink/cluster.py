"""The cluster as a sink sees it: how many partitions a topic has, who leads them, where they are.

Blocking, and for one task at a time. What is known is used until it is found to be wrong or is a
minute old, so that new partitions are seen.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from ottla.client.blocking_connection import BlockingConnection
from ottla.client.errors import CannotConnect, ClientError, Refused, check
from ottla.client.idempotence import Identity
from ottla.client.metadata import Metadata, Topic, UnknownTopic
from ottla.client.session import parse_addresses
from ottla.env.network import Address
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, TopicPartition
from ottla.protocol.messages import init_producer_id as identity_wire
from ottla.protocol.messages import metadata as wire
from ottla.spark.options import Access

Value = TypeVar("Value")

TOPIC_S_MAX: Final = 60.0
AUTO_CREATE_S_MAX: Final = 5.0  # A broker that makes no topics says no each time it is asked.
BACKOFF_S: Final = 0.05
BACKOFF_S_MAX: Final = 1.0


class SinkCluster:
    def __init__(self, access: Access, *, is_patient: bool = False) -> None:
        """Who is patient waits for a broker at the first contact too: it may be restarting."""
        self._access = access
        self._is_patient = is_patient
        self._bootstrap = parse_addresses(access.bootstrap)
        self._metadata = Metadata()
        self._asked_at: dict[str, float] = {}
        self._connections: dict[Address, BlockingConnection] = {}
        self._asking: BlockingConnection | None = None  # Of its own: on the others answers are due.

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def topic(self, name: str) -> Topic:
        """What is known about a topic; one that is missing is made, if the broker does so."""
        known = self._metadata.topics.get(name)
        if known is not None and time.monotonic() - self._asked_at[name] < TOPIC_S_MAX:
            return known
        try:
            return self.retrying(lambda: self._fetch(name), AUTO_CREATE_S_MAX)
        except Refused as failure:
            if failure.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(name) from None
            raise

    def forget_topics(self) -> None:
        """Something was found to be wrong: ask again, over new connections."""
        self.close()
        self._metadata.topics.clear()

    def leader(self, place: TopicPartition) -> BlockingConnection:
        node_id = self.topic(place.topic).leader(place.partition)
        return self.broker(node_id)

    def broker(self, node_id: NodeId) -> BlockingConnection:
        node = self._metadata.nodes.get(node_id)
        if node is None:
            raise CannotConnect(f"broker {node_id} is not part of the cluster, or is not running")
        return self._connect(node.address)

    def new_producer(self) -> Identity:
        """A producer id of our own and its epoch; by it a broker tells a retry from a new batch."""

        def attempt() -> Identity:
            request = identity_wire.Request(transactional_id=None, transaction_timeout_ms=0)
            answer = self._anyone().ask(request, identity_wire.Response)
            check(answer.error_code, about="no producer id")
            return Identity(answer.producer_id, answer.producer_epoch)

        return self.retrying(attempt, self._access.request_ms_max / 1000)

    def retrying(self, attempt: Callable[[], Value], seconds_max: float) -> Value:
        """Do something until it succeeds, fails for good, or has taken too long.

        What a broker refuses is tried for `seconds_max`; one that is gone may take longer.
        """
        began = time.monotonic()
        pause_s = BACKOFF_S
        while True:
            try:
                return attempt()
            except ClientError as failure:
                # A mistyped address is told at once.
                is_mistyped = isinstance(failure, CannotConnect) and not self._metadata.nodes
                is_given_up = is_mistyped and not self._is_patient
                longest = self._access.request_ms_max / 1000
                limit = seconds_max if isinstance(failure, Refused) else max(longest, seconds_max)
                is_late = time.monotonic() - began > limit
                if not failure.is_retriable or is_given_up or is_late:
                    raise
                if self._asking is not None and not isinstance(failure, Refused):
                    self._asking.close()
                    self._asking = None
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, BACKOFF_S_MAX)

    def _fetch(self, name: str) -> Topic:
        request = wire.Request(topics=[wire.MetadataRequestTopic(name=name)])
        answer = self._anyone().ask(request, wire.Response)
        self._metadata.update(answer)
        found = self._metadata.topics.get(name)
        if found is None:  # It may be in the making.
            raise Refused(answer.topics[0].error_code, about=f"topic {name!r}")
        self._asked_at[name] = time.monotonic()
        return found

    def _anyone(self) -> BlockingConnection:
        if self._asking is not None:
            return self._asking
        known = [node.address for node in self._metadata.nodes.values()]
        failure: ClientError | None = None
        for address in dict.fromkeys([*self._bootstrap, *known]):
            try:
                self._asking = self._open(address)
            except CannotConnect as error:
                failure = failure or error
            else:
                return self._asking
        assert failure is not None, "there was at least one address"
        raise failure

    def _connect(self, address: Address) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = self._open(address)
        return connection

    def _open(self, address: Address) -> BlockingConnection:
        access = self._access
        return access.dialer.dial_blocking(address, timeout_ms=access.request_ms_max)
