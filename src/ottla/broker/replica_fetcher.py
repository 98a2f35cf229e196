"""The follower's side of replication: one task for each broker that leads partitions of ours.

It keeps one connection and one fetch session, sends one fetch at a time for all partitions, and
does with each answer what `ottla.replication` says: append, cut, begin elsewhere, or wait.
"""

import asyncio
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, assert_never

from ottla.broker.replicated_partition import ReplicatedPartition
from ottla.client.connection import Connection
from ottla.client.errors import ClientError
from ottla.env.network import Address
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, Offset
from ottla.protocol.messages import fetch as wire
from ottla.protocol.messages import list_offsets
from ottla.protocol.varint import Buffer
from ottla.records.batch import HEADER_BYTES, OFFSET_AND_LENGTH, Batch
from ottla.replication.fetch_plan import Asked, FetchPlan, Key, Limits
from ottla.replication.follower import (
    Action,
    Answer,
    Append,
    AskOffsets,
    Follower,
    StartAt,
    Truncate,
)

if TYPE_CHECKING:
    from ottla.broker.server import Broker

logger = logging.getLogger(__name__)

LATEST: Final = -1
EARLIEST: Final = -2
CONNECT_MS_MAX: Final = 2_000  # Whoever does not answer in that time is tried again.
# After these another session is begun at once; after any other error, in a while.
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class ReplicaFetcher:
    def __init__(self, broker: "Broker", leader: NodeId) -> None:
        settings = broker.settings
        limits = Limits(
            settings.replica_fetch_wait_max_ms,
            settings.replica_fetch_min_bytes,
            settings.replica_fetch_response_max_bytes,
            settings.replica_fetch_max_bytes,
        )
        self._broker = broker
        self._leader = leader
        self._plan = FetchPlan(broker.node_id, limits)
        self._partitions: dict[Key, ReplicatedPartition] = {}
        self._has_work = asyncio.Event()
        self._connection: Connection | None = None
        self._sent: deque[asyncio.Future[wire.Response]] = deque()
        self._is_nudged = False
        self._failures = 0  # In a row.

    def __len__(self) -> int:
        return len(self._plan)

    def follow(self, partition: ReplicatedPartition, follower: Follower) -> None:
        key = (partition.topic_id, partition.name.partition)
        self._partitions[key] = partition
        self._act(partition, follower, follower.first_action(), None)
        self._plan.follow(key, follower)
        self._nudge()

    def unfollow(self, partition: ReplicatedPartition) -> None:
        key = (partition.topic_id, partition.name.partition)
        self._partitions.pop(key, None)
        self._plan.unfollow(key)
        self._nudge()

    def try_now(self) -> None:
        """The other broker may be back."""
        self._has_work.set()

    def reconnect(self) -> None:
        """We were cut off: a connection of before may be silent for long, though the way is free.

        TCP repeats what nobody confirmed after ever longer pauses.
        """
        if self._connection is not None:
            self._connection.close()

    async def run(self) -> None:
        try:
            while True:
                try:
                    if not self._sent and not await self._send():
                        await self._wait_for_work()
                    if self._sent:
                        await self._receive(self._sent.popleft())
                except ClientError as error:
                    await self._failed(error)
        finally:
            self._close()

    async def _wait_for_work(self) -> None:
        retry_at = self._plan.next_retry_at()
        self._has_work.clear()
        timeout = None if retry_at is None else max(retry_at - self._broker.now, 0) / 1000
        try:
            async with asyncio.timeout(timeout):
                await self._has_work.wait()
        except TimeoutError:
            pass  # Something that failed is to be tried again.

    def _nudge(self) -> None:
        """There is something new: a fetch that waits at the leader is not to hold it up."""
        self._has_work.set()
        if self._plan.is_under_way and not self._is_nudged:
            self._is_nudged = True
            asyncio.get_running_loop().call_soon(self._send_more)

    def _send_more(self) -> None:
        self._is_nudged = False
        connection = self._connection
        if connection is not None and connection.is_open and self._plan.is_under_way:
            request = self._next_request()
            if request is not None:
                self._sent.append(connection.send(request, wire.Response))
                self._retry_later()

    def _retry_later(self) -> None:
        """What failed is asked for again in time, though a fetch of all the rest waits."""
        retry_at = self._plan.next_retry_at()
        if retry_at is not None:
            self._broker.call_later(max(retry_at - self._broker.now, 1), self._nudge)

    async def _send(self) -> bool:
        """Send the next fetch, if there is something to fetch."""
        request = self._next_request()
        if request is None:
            return False
        connection = await self._connected()
        self._sent.append(connection.send(request, wire.Response))
        self._retry_later()
        return True

    def _next_request(self) -> wire.Request | None:
        lifecycle = self._broker.lifecycle
        if not lifecycle.is_registered:  # A fetch names the epoch of its broker.
            return None
        return self._plan.next_request(lifecycle.broker_epoch, self._broker.now)

    async def _receive(self, sent: "asyncio.Future[wire.Response]") -> None:
        connection, settings = self._connection, self._broker.settings
        assert connection is not None, "something was sent on it"
        timeout_ms = settings.replica_socket_timeout_ms + settings.replica_fetch_wait_max_ms
        response = await connection.wait(sent, timeout_ms)
        if not response.error_code:
            self._failures = 0
        synced: list[ReplicatedPartition] = []
        asking: list[tuple[ReplicatedPartition, Follower]] = []
        for key, follower, asked, part in self._plan.answered(response):
            partition = self._partitions[key]
            action = self._answered(partition, follower, asked, part)
            if isinstance(action, Append) and partition.is_synced_before_reply:
                synced.append(partition)
            elif isinstance(action, AskOffsets):
                asking.append((partition, follower))
        self._broker.partitions.write_starts()  # Before the next fetch says that we know of them.
        if synced:
            # What we ask for next says what we have: on the disk, if that is what counts.
            await self._broker.partitions.sync.all(synced)
        await self._ask_all(connection, asking)
        if self._sent:
            self._send_more()  # What this answer brought is not to wait for the next one's.
        if response.error_code:
            name = ErrorCode(response.error_code).name
            logger.info("broker %d answers a fetch with %s", self._leader, name)
            if self._sent or response.error_code not in SESSION_ERRORS:
                raise ClientError("the session is over, and so is what was sent after it")

    def _answered(
        self,
        partition: ReplicatedPartition,
        follower: Follower,
        asked: Asked,
        part: wire.PartitionData,
    ) -> Action:
        diverging = part.diverging_epoch
        answer = Answer(
            part.error_code,
            part.high_watermark,
            part.log_start_offset,
            has_records=bool(part.records),
            diverging=(diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
        )
        now, had_heard = self._broker.now, follower.has_heard
        action = follower.answered(
            answer, asked_offset=asked.offset, asked_epoch=asked.last_epoch, now=now
        )
        self._act(partition, follower, action, part)
        if follower.has_heard and not had_heard:
            self._broker.replica_directories.heard_leader(partition)
        if action is None and not part.error_code:
            self._advance_start(partition, part.log_start_offset)
        elif part.error_code and part.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
            name = ErrorCode(part.error_code).name
            logger.info("%s: broker %d answers %s", partition.name, self._leader, name)
        return action

    def _act(
        self,
        partition: ReplicatedPartition,
        follower: Follower,
        action: Action,
        part: wire.PartitionData | None,
    ) -> None:
        broker, log = self._broker, partition.log
        directory = broker.directories.of(log)
        try:
            match action:
                case Append():
                    assert part is not None, "records come with an answer"
                    self._append(partition, follower, part)
                case Truncate():
                    logger.info(
                        "%s is cut from %d to %d", log.directory, log.end_offset, action.offset
                    )
                    directory.truncate_log(partition.name, action.offset)
                    follower.truncated()
                case StartAt():
                    logger.info("%s begins anew at %d", log.directory, action.offset)
                    directory.start_log_at(partition.name, action.offset)
                    follower.truncated()
                case AskOffsets() | None:
                    pass  # The leader is asked once all of this answer is dealt with.
                case _:
                    assert_never(action)
        except OSError as error:
            follower.failed(broker.now)
            broker.directories.write_failed(log, error)
            return
        if partition.follower is follower:
            partition.replicated()

    def _append(
        self, partition: ReplicatedPartition, follower: Follower, part: wire.PartitionData
    ) -> None:
        batches = _whole_batches(part.records or b"", partition.log.end_offset)
        if not batches:
            logger.error("%s: broker %d sent damaged records", partition.name, self._leader)
            follower.failed(self._broker.now)
            return
        if batches[0].base_offset < partition.log.end_offset:
            # The log was cut inside of a batch: it ends where that one began.
            directory = self._broker.directories.of(partition.log)
            directory.truncate_log(partition.name, batches[0].base_offset)
        partition.log.append(batches, self._broker.env.clock.wall())
        if follower.throttle is not None:
            follower.throttle.record(sum(batch.size for batch in batches), self._broker.now)
        follower.appended(part.high_watermark)
        self._advance_start(partition, part.log_start_offset)

    def _advance_start(self, partition: ReplicatedPartition, offset: Offset) -> None:
        """What the leader does not serve any more, we do not keep for it either."""
        log = partition.log
        if log.log_start_offset < offset <= partition.high_watermark:
            log.advance_log_start(offset)
            self._broker.partitions.start_moved(log)

    async def _ask_all(
        self, connection: Connection, asking: list[tuple[ReplicatedPartition, Follower]]
    ) -> None:
        left = deque(asking)
        try:
            while left:
                partition, follower = left[0]
                if not await self._ask_offsets(connection, partition, follower):
                    self._not_told(partition, follower)
                left.popleft()
        finally:
            for partition, follower in left:
                self._not_told(partition, follower)

    async def _ask_offsets(
        self, connection: Connection, partition: ReplicatedPartition, follower: Follower
    ) -> bool:
        start = await self._offset(connection, partition, follower, EARLIEST)
        end = await self._offset(connection, partition, follower, LATEST)
        if start is None or end is None or partition.follower is not follower:
            return False
        action = follower.leader_offsets(start, end)
        self._act(partition, follower, action, None)
        self._plan.changed((partition.topic_id, partition.name.partition))
        return True

    def _not_told(self, partition: ReplicatedPartition, follower: Follower) -> None:
        """Try what it tried before; the plan may have given it up while it was asking."""
        follower.failed(self._broker.now)
        follower.leader_offsets(0, partition.log.end_offset)
        self._plan.changed((partition.topic_id, partition.name.partition))

    async def _offset(
        self,
        connection: Connection,
        partition: ReplicatedPartition,
        follower: Follower,
        timestamp: int,
    ) -> Offset | None:
        asked = list_offsets.ListOffsetsPartition(
            partition.name.partition, follower.leader_epoch, timestamp
        )
        topic = list_offsets.ListOffsetsTopic(partition.name.topic, [asked])
        request = list_offsets.Request(replica_id=self._broker.node_id, topics=[topic])
        timeout_ms = self._broker.settings.replica_socket_timeout_ms
        response = await connection.ask(request, list_offsets.Response, timeout_ms=timeout_ms)
        found = response.topics[0].partitions[0]
        return None if found.error_code else found.offset

    async def _connected(self) -> Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        broker = self._broker
        address = _address(broker, self._leader)
        if address is None:
            raise ClientError(f"nobody knows where broker {self._leader} is")
        self._connection = await Connection.open(
            broker.env.network,
            address,
            client_id=f"broker-{broker.node_id}-fetcher",
            timeout_ms=min(CONNECT_MS_MAX, broker.settings.replica_socket_timeout_ms),
        )
        self._connection.on_lost = partial(broker.neighbours.lost, self._leader)
        broker.neighbours.reached(self._leader)
        return self._connection

    async def _failed(self, error: ClientError) -> None:
        self._plan.lost()
        self._sent.clear()
        self._close()
        logger.info("cannot fetch from broker %d: %s", self._leader, error)
        self._failures += 1
        if self._failures == 1:
            return  # Is it there at all? Others wait to know.
        self._has_work.clear()
        try:
            # Soon, or as soon as there is something new: perhaps another leader.
            async with asyncio.timeout(self._broker.settings.replica_fetch_backoff_ms / 1000):
                await self._has_work.wait()
        except TimeoutError:
            pass

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _address(broker: "Broker", node: NodeId) -> Address | None:
    known = broker.image.brokers.get(node)
    if known is None:
        return None
    endpoint = known.endpoints.get(broker.settings.inter_broker_listener_name)
    if endpoint is None:
        return None
    return Address(endpoint.host, endpoint.port)


def _whole_batches(data: Buffer, offset: Offset) -> list[Batch]:
    """The batches that are whole and right, from `offset` on; the last one may be cut."""
    batches: list[Batch] = []
    position, size = 0, len(data)
    while size - position >= HEADER_BYTES:
        _, length = OFFSET_AND_LENGTH.unpack_from(data, position)
        if position + OFFSET_AND_LENGTH.size + length > size:
            break
        try:
            batch = Batch.parse(data, position)
        except ValueError:
            break
        position += batch.size
        if batch.next_offset <= offset:
            continue
        if not batch.is_valid:
            break
        batches.append(batch)
    return batches
