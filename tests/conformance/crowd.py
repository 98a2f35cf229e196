"""Hundreds of members of one group on one event loop, each with a connection of its own.

Members speak the protocol themselves, which costs little: what is slow is the broker. They own
partitions of one topic, and read nothing.
"""

import asyncio
import struct
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ottla.client.membership import share_by_ranges
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey, response_class
from ottla.protocol.codec import decode_from, encode
from ottla.protocol.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_versioned,
    encode_versioned,
)
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request_header
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)

SESSION_MS, REBALANCE_MS = 30_000, 60_000
RETRY_SECONDS = 0.05
NOT_NOW = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Wire:
    """One connection; requests are answered one after the other."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._correlation_id = 0

    async def open(self) -> None:
        host, port = self._bootstrap.split(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port))

    async def ask(self, request: Any, version: int) -> Any:  # noqa: ANN401
        while True:
            answer = await self._ask(request, version)
            if answer.error_code not in NOT_NOW:
                return answer
            await asyncio.sleep(RETRY_SECONDS)

    async def _ask(self, request: Any, version: int) -> Any:  # noqa: ANN401
        self._correlation_id += 1
        key = type(request).API_KEY
        header = RequestHeader(key, version, self._correlation_id, "crowd")
        frame = encode_request_header(header) + encode(request, version)
        self._writer.write(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        found = await self._reader.readexactly(size)
        _, position = decode_response_header(found, key, version)
        return decode_from(response_class(ApiKey(key)), found, position, version)[0]

    def close(self) -> None:
        self._writer.close()


class Member:
    """What both protocols share: it joins and stays until it leaves."""

    def __init__(self, bootstrap: str, group: str, topic: str, heartbeat_seconds: float) -> None:
        self.group = group
        self.topic = topic
        self.id = ""
        self.epoch = -1
        self.owned: set[int] = set()
        self.heartbeats = 0
        self.wire = Wire(bootstrap)
        self.heartbeat_seconds = heartbeat_seconds

    async def join(self) -> None:
        """Until it has an assignment, be it an empty one."""
        raise NotImplementedError

    async def stay(self) -> None:
        raise NotImplementedError

    async def leave(self) -> None:
        raise NotImplementedError


class ClassicMember(Member):
    """Eager, and leads by ranges if it is told to."""

    partitions = 0  # Of the topic; set by the crowd.

    async def join(self) -> None:
        while True:
            self.owned = set()
            joined = await self.wire.ask(self._joining(), 9)
            self.id = joined.member_id or self.id
            if joined.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self.id = ""
            if joined.error_code:
                continue
            self.epoch = joined.generation_id
            synced = await self.wire.ask(self._syncing(joined), 5)
            if synced.error_code == ErrorCode.NONE:
                assignment = decode_versioned(ConsumerProtocolAssignment, synced.assignment)[0]
                parts = [part.partitions for part in assignment.assigned_partitions]
                self.owned = {index for indexes in parts for index in indexes}
                return

    async def stay(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat_seconds)
            request = heartbeat.Request(self.group, self.epoch, self.id)
            self.heartbeats += 1
            if (await self.wire.ask(request, 4)).error_code:
                await self.join()

    async def leave(self) -> None:
        request = leave_group.Request(self.group, members=[leave_group.MemberIdentity(self.id)])
        await self.wire.ask(request, 5)

    def _joining(self) -> join_group.Request:
        wish = encode_versioned(ConsumerProtocolSubscription([self.topic]), 3)
        return join_group.Request(
            self.group,
            SESSION_MS,
            REBALANCE_MS,
            self.id,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol("range", wish)],
        )

    def _syncing(self, joined: join_group.Response) -> sync_group.Request:
        request = sync_group.Request(
            self.group, self.epoch, self.id, protocol_type="consumer", protocol_name="range"
        )
        if joined.leader == self.id:
            wishes = {member.member_id: [self.topic] for member in joined.members}
            shares = share_by_ranges(wishes, {self.topic: self.partitions})
            for who, share in shares.items():
                mine = AssignmentTopicPartition(self.topic, [place.partition for place in share])
                data = encode_versioned(ConsumerProtocolAssignment([mine]), 3)
                request.assignments.append(sync_group.SyncGroupRequestAssignment(who, data))
        return request


class ConsumerMember(Member):
    """Of the new protocol: gives up at once what it shall not own, and says so."""

    async def join(self) -> None:
        self.id = self.id or str(uuid.uuid4())
        self.epoch = 0
        self.owned = set()
        await self._beat(is_joining=True)

    async def stay(self) -> None:
        while True:
            await asyncio.sleep(self.heartbeat_seconds)
            await self._beat(is_joining=False)

    async def leave(self) -> None:
        request = consumer_group_heartbeat.Request(self.group, self.id, -1)
        await self.wire.ask(request, 1)

    async def _beat(self, *, is_joining: bool) -> None:
        """Say that it is here; and, when that changes what it owns, that it has seen to it."""
        topic_id = bytes(16)
        is_changed = is_joining
        while True:
            request = consumer_group_heartbeat.Request(self.group, self.id, self.epoch)
            if is_joining:
                request.rebalance_timeout_ms = REBALANCE_MS
                request.subscribed_topic_names = [self.topic]
            if is_changed:
                places = [consumer_group_heartbeat.TopicPartitions(topic_id, sorted(self.owned))]
                request.topic_partitions = places if self.owned else []
            self.heartbeats += 1
            answer = await self.wire.ask(request, 1)
            if answer.error_code:
                self.epoch, self.owned, is_joining, is_changed = 0, set(), True, True
                continue
            self.epoch, is_joining = answer.member_epoch, False
            if answer.assignment is None:
                return
            given = answer.assignment.topic_partitions
            topic_id = given[0].topic_id if given else topic_id
            before, self.owned = self.owned, {index for one in given for index in one.partitions}
            is_changed = self.owned != before
            if not is_changed:
                return


class Crowd:
    """All members of one group, and the tasks that keep them in it."""

    def __init__(self, members: Sequence[Member], partitions: int) -> None:
        self.members = list(members)
        self.partitions = partitions
        self._tasks: dict[Member, asyncio.Task[None]] = {}

    async def connect(self) -> None:
        for member in self.members:
            await member.wire.open()
        first = self.members[0]
        key = find_coordinator.Request(key=first.group, key_type=0)
        await first.wire.ask(key, 3)

    async def join(self, members: Sequence[Member] = ()) -> None:
        """All at once; they stay in the group from here on."""
        for member in members or self.members:
            self._tasks[member] = asyncio.create_task(self._live(member))

    async def leave(self, members: Sequence[Member]) -> None:
        """All at once."""
        for member in members:
            await self._stop(member)
        await asyncio.gather(*(member.leave() for member in members))
        for member in members:
            member.wire.close()
            self.members.remove(member)

    async def close(self) -> None:
        for member in self.members:
            await self._stop(member)
            member.wire.close()

    async def until(self, condition: Callable[[], bool], seconds_max: float) -> None:
        async with asyncio.timeout(seconds_max):
            while not condition():
                for task in self._tasks.values():
                    if task.done():
                        task.result()
                await asyncio.sleep(0.005)

    def is_stable(self) -> bool:
        """All are in the same epoch, and own each partition once, in even shares."""
        owned = [index for member in self.members for index in member.owned]
        shares = [len(member.owned) for member in self.members]
        return (
            len({member.epoch for member in self.members}) == 1
            and self.members[0].epoch > 0
            and len(owned) == self.partitions == len(set(owned))
            and max(shares) - min(shares) <= 1
        )

    def doubly_owned(self) -> list[int]:
        counts = Counter(index for member in self.members for index in member.owned)
        return [index for index, count in counts.items() if count > 1]

    async def _live(self, member: Member) -> None:
        await member.join()
        await member.stay()

    async def _stop(self, member: Member) -> None:
        task = self._tasks.pop(member)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def crowd(
    kind: type[Member],
    bootstrap: str,
    group: str,
    topic: str,
    count: int,
    *,
    partitions: int,
    heartbeat_seconds: float,
) -> Crowd:
    members = [kind(bootstrap, group, topic, heartbeat_seconds) for _ in range(count)]
    for member in members:
        if isinstance(member, ClassicMember):
            member.partitions = partitions
    return Crowd(members, partitions)
