"""The follower's side of replication: one task for each broker that leads partitions of ours.

It keeps one connection and one fetch session, sends one fetch at a time for all partitions, and
does with each answer what `ottla.replication` says: append, cut, begin elsewhere, or wait.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, Protocol, assert_never

from ottla.broker.context import BrokerContext
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.broker.replicas.fetched_batches import copied, may_cut, whole_batches
from ottla.client.connection import Connection
from ottla.client.dialer import Dialer
from ottla.client.errors import ClientError
from ottla.env.network import Address
from ottla.model.errors import Damaged, ErrorCode, Refusal
from ottla.model.types import NodeId, Offset
from ottla.protocol.messages import fetch as wire
from ottla.protocol.messages import list_offsets
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


class Contacts(Protocol):
    """Notes which other brokers answer, and which closed their connection."""

    def lost(self, node: NodeId) -> None: ...
    def reached(self, node: NodeId) -> None: ...


class Move(NamedTuple):
    """A log is to be cut, or to begin elsewhere; then `part` is appended, if there is one."""

    partition: ReplicatedPartition
    follower: Follower
    action: Truncate | StartAt
    part: wire.PartitionData | None = None


class ReplicaFetcher:
    def __init__(
        self,
        context: BrokerContext,
        registry: Partitions,
        contacts: Contacts,
        heard_leader: Callable[[Partition], None],
        leader: NodeId,
    ) -> None:
        """`heard_leader` gets each partition when its leader has answered for the first time."""
        settings = context.settings
        limits = Limits(
            settings.replica_fetch_wait_max_ms,
            settings.replica_fetch_min_bytes,
            settings.replica_fetch_response_max_bytes,
            settings.replica_fetch_max_bytes,
        )
        self._context = context
        self._registry = registry
        self._contacts = contacts
        self._heard_leader = heard_leader
        self._leader = leader
        self._plan = FetchPlan(self._context.node_id, limits)
        self._partitions: dict[Key, ReplicatedPartition] = {}
        self._has_work = asyncio.Event()
        self._dialer = Dialer(f"broker-{context.node_id}-fetcher")
        self._connection: Connection | None = None
        self._sent: deque[asyncio.Future[wire.Response]] = deque()
        self._first_moves: list[Move] = []  # Of logs that are not fetched before.
        self._is_settling = False  # An answer: the next fetch must not say yet what we have.
        self._is_nudged = False
        self._failures = 0  # In a row.

    def __len__(self) -> int:
        return len(self._plan)

    def follow(self, partition: ReplicatedPartition, follower: Follower) -> None:
        key = (partition.topic_id, partition.name.partition)
        self._partitions[key] = partition
        action = follower.first_action()
        if action is None:
            self._plan.follow(key, follower)
        else:
            self._first_moves.append(Move(partition, follower, action))
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
                    if self._first_moves:
                        await self._move_first()
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
        timeout = None if retry_at is None else max(retry_at - self._context.now, 0) / 1000
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
        if self._is_settling or connection is None or not connection.is_open:
            return
        if self._plan.is_under_way:
            request = self._next_request()
            if request is not None:
                self._sent.append(connection.send(request, wire.Response))
                self._retry_later()

    def _retry_later(self) -> None:
        """What failed is asked for again in time, though a fetch of all the rest waits."""
        retry_at = self._plan.next_retry_at()
        if retry_at is not None:
            self._context.call_later(max(retry_at - self._context.now, 1), self._nudge)

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
        if not self._context.is_registered:  # A fetch names the epoch of its broker.
            return None
        return self._plan.next_request(self._context.broker_epoch, self._context.now)

    async def _receive(self, sent: "asyncio.Future[wire.Response]") -> None:
        connection, settings = self._connection, self._context.settings
        assert connection is not None, "something was sent on it"
        timeout_ms = settings.replica_socket_timeout_ms + settings.replica_fetch_wait_max_ms
        response = await connection.wait(sent, timeout_ms)
        if not response.error_code:
            self._failures = 0
        self._is_settling = True
        try:
            await self._settle(connection, response)
        finally:
            self._is_settling = False
        if self._sent:
            self._send_more()  # What this answer brought is not to wait for the next one's.
        if response.error_code:
            name = ErrorCode(response.error_code).name
            logger.info("broker %d answers a fetch with %s", self._leader, name)
            if self._sent or response.error_code not in SESSION_ERRORS:
                raise ClientError("the session is over, and so is what was sent after it")

    async def _settle(self, connection: Connection, response: wire.Response) -> None:
        """Do all that the answer asks for, durably where the next fetch is to say so."""
        synced: list[ReplicatedPartition] = []
        moves: list[Move] = []
        asking: list[tuple[ReplicatedPartition, Follower]] = []
        for key, follower, asked, part in self._plan.answered(response):
            partition = self._partitions[key]
            match self._answered(partition, follower, asked, part):
                case Append() if partition.is_synced_before_reply:
                    synced.append(partition)
                case Truncate() | StartAt() as action:
                    moves.append(Move(partition, follower, action, copied(part)))
                    if partition.is_synced_before_reply:
                        synced.append(partition)
                case AskOffsets():
                    asking.append((partition, follower))
                case _:
                    pass
        await self._move_all(moves)
        await self._registry.write_starts()
        if synced:
            await self._registry.sync.all(synced)
        await self._ask_all(connection, asking)

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
        now, was_known = self._context.now, follower.is_known_to_leader
        action = follower.answered(
            answer, asked_offset=asked.offset, asked_epoch=asked.last_epoch, now=now
        )
        is_empty = action is None and not part.error_code
        if isinstance(action, Append):
            action = self._append(partition, follower, part)
        if partition.follower is follower:
            partition.replicated()
        if follower.is_known_to_leader and not was_known:
            self._heard_leader(partition)
        if is_empty:
            self._advance_start(partition, part.log_start_offset)
        elif part.error_code and part.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
            name = ErrorCode(part.error_code).name
            logger.info("%s: broker %d answers %s", partition.name, self._leader, name)
        return action

    def _append(
        self, partition: ReplicatedPartition, follower: Follower, part: wire.PartitionData
    ) -> Action:
        """Append the records of an answer; returns what has to be done in place of that, or it."""
        log, epoch = partition.log, follower.leader_epoch
        try:
            batches = whole_batches(
                part.records or b"",
                log.end_offset,
                epoch_max=epoch,
                high_watermark=part.high_watermark,
            )
            if batches and (start := batches[0].base_offset) < log.end_offset:
                # The log was cut, or begins, inside of that batch: it is appended to what is left.
                committed = max(follower.high_watermark, min(part.high_watermark, log.end_offset))
                if may_cut(log, start, committed):
                    return Truncate(start)
                batches = []
            log.append(batches, self._context.env.clock.wall())
        except (OSError, Damaged) as error:
            follower.failed(self._context.now)
            self._registry.read_failed(partition, error)
            return None
        if not batches:
            logger.error(
                "%s: broker %d sent records that are damaged or newer than its epoch %d",
                partition.name,
                self._leader,
                epoch,
            )
            follower.failed(self._context.now)
            return None
        if follower.throttle is not None:
            follower.throttle.record(sum(batch.size for batch in batches), self._context.now)
        follower.appended(part.high_watermark)
        if partition.follower is follower:
            partition.replicated()
        self._advance_start(partition, part.log_start_offset)
        return Append()

    def _advance_start(self, partition: ReplicatedPartition, offset: Offset) -> None:
        """What the leader does not serve any more, we do not keep for it either."""
        log = partition.log
        if log.log_start_offset < offset <= partition.high_watermark:
            log.advance_log_start(offset)
            self._registry.start_moved(log)

    async def _move_first(self) -> None:
        """Move logs as they have to be before the first fetch, then fetch."""
        moves, self._first_moves = self._first_moves, []
        await self._move_all(moves)
        for partition, follower, *_ in moves:
            key = (partition.topic_id, partition.name.partition)
            if self._partitions.get(key) is partition and partition.follower is follower:
                self._plan.follow(key, follower)

    async def _move_all(self, moves: list[Move]) -> None:
        """Cut logs, or begin them elsewhere: one at a time, others have the loop between two."""
        left = deque(moves)
        while left:
            partition, follower, action, part = left[0]
            try:
                await self._lower_all(left)
                if self._is_current(partition, follower):
                    if self._must_lower(partition, action):
                        continue  # A sync has raised it again meanwhile.
                    self._move(partition, follower, action)
                    if part is not None:
                        self._append(partition, follower, part)
            except Refusal:
                follower.failed(self._context.now)  # There is no room for a checkpoint.
            except (OSError, Damaged) as error:
                follower.failed(self._context.now)
                self._registry.read_failed(partition, error)
            left.popleft()
            self._plan.changed((partition.topic_id, partition.name.partition))
            await asyncio.sleep(0)

    async def _lower_all(self, moves: Iterable[Move]) -> None:
        """Lower on disk what checkpoints promise of these logs, with one write for each disk."""
        directories = {
            self._registry.directories.of(partition.log): None
            for partition, follower, action, _ in moves
            if self._is_current(partition, follower) and self._must_lower(partition, action)
        }
        for directory in directories:
            await self._registry.checkpoints.write(directory)

    def _is_current(self, partition: ReplicatedPartition, follower: Follower) -> bool:
        directory = self._registry.directories.of(partition.log)
        return (
            partition.follower is follower
            and directory.failure is None
            and directory.logs.get(partition.name) is partition.log
        )

    def _must_lower(self, partition: ReplicatedPartition, action: Truncate | StartAt) -> bool:
        """Whether a checkpoint on disk may say more of the log than will be left of it."""
        log = partition.log
        if isinstance(action, Truncate) and action.offset >= log.end_offset:
            return False
        offset = action.offset if isinstance(action, Truncate) else 0
        # A log that ends before its checkpointed high watermark would count as damaged.
        partition.high_watermark = min(partition.high_watermark, offset)
        directory = self._registry.directories.of(log)
        return directory.lower_recovery_point(partition.name, offset)

    def _move(
        self, partition: ReplicatedPartition, follower: Follower, action: Truncate | StartAt
    ) -> None:
        log, directory = partition.log, self._registry.directories.of(partition.log)
        try:
            match action:
                case Truncate():
                    end = log.end_offset
                    logger.info("%s is cut from %d to %d", log.directory, end, action.offset)
                    directory.truncate_log(partition.name, action.offset)
                case StartAt():
                    logger.info("%s begins anew at %d", log.directory, action.offset)
                    directory.start_log_at(partition.name, action.offset)
                case _:
                    assert_never(action)
        finally:  # Also where its files cannot follow yet, the log ends there.
            follower.truncated()
            partition.replicated()

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
        action = follower.leader_offsets(start, end, self._context.now)
        if isinstance(action, Truncate | StartAt):
            await self._move_all([Move(partition, follower, action)])
        self._plan.changed((partition.topic_id, partition.name.partition))
        return True

    def _not_told(self, partition: ReplicatedPartition, follower: Follower) -> None:
        """Try what it tried before; the plan may have given it up while it was asking."""
        follower.leader_offsets(0, partition.log.end_offset, self._context.now)
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
        request = list_offsets.Request(replica_id=self._context.node_id, topics=[topic])
        timeout_ms = self._context.settings.replica_socket_timeout_ms
        response = await connection.ask(request, list_offsets.Response, timeout_ms=timeout_ms)
        found = response.topics[0].partitions[0]
        return None if found.error_code else found.offset

    async def _connected(self) -> Connection:
        if self._connection is not None and self._connection.is_open:
            return self._connection
        address = self._address()
        if address is None:
            raise ClientError(f"nobody knows where broker {self._leader} is")
        self._connection = await self._dialer.dial(
            self._context.env.network,
            address,
            timeout_ms=min(CONNECT_MS_MAX, self._context.settings.replica_socket_timeout_ms),
        )
        self._connection.on_lost = partial(self._contacts.lost, self._leader)
        self._contacts.reached(self._leader)
        return self._connection

    def _address(self) -> Address | None:
        known = self._context.image.brokers.get(self._leader)
        if known is None:
            return None
        endpoint = known.endpoints.get(self._context.settings.inter_broker_listener_name)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

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
            async with asyncio.timeout(self._context.settings.replica_fetch_backoff_ms / 1000):
                await self._has_work.wait()
        except TimeoutError:
            pass

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
