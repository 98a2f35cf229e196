"""A group coordinator on its own: time stands still until it is moved, records are in a list."""

from collections.abc import Sequence
from typing import Any

from ottla.broker.machines.host import MachineHost
from ottla.groups.coordinator import GroupCoordinator, Loaded
from ottla.groups.settings import GroupSettings
from ottla.groups.turn import GroupCommand
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Decision
from ottla.model.types import Monotonic, Offset, WallTime
from ottla.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_versioned
from ottla.protocol.group_records import GroupRecord, decode_record, encode_key, encode_value
from ottla.protocol.messages import (
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tests.answers import collect

# ruff: noqa: ANN401  Requests and replies are of many classes.

GROUP = "billing"
SETTINGS = GroupSettings(initial_rebalance_delay_ms=0)
NONE = 0


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1000

    def monotonic(self) -> Monotonic:
        return Monotonic(self.now_ms)

    counting_sleep = monotonic

    def wall(self) -> WallTime:
        return WallTime(1_700_000_000_000 + self.now_ms)


class World:
    """Records that are appended are committed at once, unless the log refuses them."""

    def __init__(self, settings: GroupSettings = SETTINGS) -> None:
        self.settings = settings
        self.refusal: ErrorCode | None = None  # Of every record.
        self.record_bytes_max = 1 << 20
        self.appends = 0
        self.clock = Clock()
        self.log: list[GroupRecord] = []
        self._ids = 0
        self.reload()

    def reload(self) -> None:
        """Lose the machine, with all that is soft in it, and fold the log again."""
        if hasattr(self, "host"):
            self.host.drop(Refusal(ErrorCode.NOT_COORDINATOR))
        machine = self.new_machine()
        for offset, record in enumerate(self.log):
            machine.apply(offset, record, None)
        self.machine = machine
        self.host: MachineHost[GroupCommand, GroupRecord, Any] = MachineHost(
            machine, self._append, self.clock, len(self.log)
        )
        self.ask(Loaded())

    def new_machine(self) -> GroupCoordinator:
        return GroupCoordinator(
            self.settings, wall=self.clock.wall, new_id=self._new_id, admit=self.admit
        )

    def admit(self, records: Sequence[GroupRecord]) -> None:
        if self.refusal is not None:
            raise Refusal(self.refusal)
        for key, value in records:
            try:
                size = len(encode_key(key)) + len(encode_value(value) or b"")
            except ValueError as error:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR) from error
            if size > self.record_bytes_max:
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)

    def ask(self, request: Any, version: int | None = None, client: str = "app") -> list[Any]:
        """A list that holds the reply, once there is one."""
        replies: list[Any] = []
        if version is None:
            version = getattr(type(request), "VERSIONS", range(1))[-1]
        command = GroupCommand(request, version, client, "/10.0.0.1")
        collect(self.host.submit(command), replies)
        self.host.committed(len(self.log))
        return replies

    def reply(self, request: Any, version: int | None = None) -> Any:
        (reply,) = self.ask(request, version)
        return reply

    def code(self, request: Any, version: int | None = None) -> int:
        reply = self.reply(request, version)
        code: int = reply.code if isinstance(reply, Refusal) else reply.error_code
        return code

    def pass_time(self, milliseconds: int) -> None:
        """Let the machine act at each of its deadlines on the way."""
        end = self.clock.now_ms + milliseconds
        while (deadline := self.machine.next_deadline()) is not None and deadline <= end:
            self.clock.now_ms = max(self.clock.now_ms, deadline)
            self.host.tick()
            self.host.committed(len(self.log))
        self.clock.now_ms = end

    def _append(self, decision: Decision[GroupRecord, Any]) -> tuple[Offset, list[GroupRecord]]:
        records = decision.records
        self.admit(records)
        self.appends += 1
        base = len(self.log)
        for record in records:
            kept = decode_record(encode_key(record.key), encode_value(record.value))
            assert kept == record, "what is written is what is read"
            self.log.append(record)
        return base, records

    def _new_id(self) -> str:
        self._ids += 1
        return str(self._ids)


def joining(member_id: str = "", *, group: str = GROUP, **fields: Any) -> join_group.Request:
    protocols = fields.pop("protocols", {"range": subscription("t")})
    request = join_group.Request(
        group, 10_000, 30_000, member_id, None, "consumer",
        [join_group.JoinGroupRequestProtocol(*protocol) for protocol in protocols.items()],
    )  # fmt: skip
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def subscription(*topics: str) -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(list(topics)), 1)


def new_id(world: World, **fields: Any) -> str:
    """What KIP-394 gives to a member that comes without an id."""
    reply = world.reply(joining(**fields))
    assert reply.error_code == 79
    member_id: str = reply.member_id
    return member_id


def syncing(
    generation: int, member_id: str, assignments: dict[str, bytes] | None = None, **fields: Any
) -> sync_group.Request:
    request = sync_group.Request(GROUP, generation, member_id)
    request.assignments = [
        sync_group.SyncGroupRequestAssignment(*one) for one in (assignments or {}).items()
    ]
    for name, value in fields.items():
        setattr(request, name, value)
    return request


def beating(generation: int, member_id: str, instance_id: str | None = None) -> heartbeat.Request:
    return heartbeat.Request(GROUP, generation, member_id, instance_id)


def leaving(member_id: str, instance_id: str | None = None) -> leave_group.Request:
    return leave_group.Request(GROUP, members=[leave_group.MemberIdentity(member_id, instance_id)])


def committing(
    offset: int, generation: int = -1, member_id: str = "", *, topic: str = "t", note: str = ""
) -> offset_commit.Request:
    part = offset_commit.OffsetCommitRequestPartition(0, offset, -1, note)
    return offset_commit.Request(
        GROUP,
        generation,
        member_id,
        topics=[offset_commit.OffsetCommitRequestTopic(topic, bytes(16), [part])],
    )


def committed(world: World, topic: str = "t", group: str = GROUP) -> int:
    asked = offset_fetch.OffsetFetchRequestGroup(
        group, topics=[offset_fetch.OffsetFetchRequestTopics(topic, partition_indexes=[0])]
    )
    offset: int = world.reply(asked).topics[0].partitions[0].committed_offset
    return offset


def stable(world: World, count: int = 1, **fields: Any) -> tuple[int, list[str]]:
    """A stable group: its generation, and its members' ids, the leader first."""
    ids: list[str] = []
    waiting: list[list[Any]] = []
    for _ in range(count):
        ids.append(new_id(world, **fields))
        waiting = [world.ask(joining(id_, **fields)) for id_ in reversed(ids)]
    generation: int = waiting[-1][0].generation_id
    leader = waiting[-1][0].leader
    followers = [id_ for id_ in ids if id_ != leader]
    synced = [world.ask(syncing(generation, id_)) for id_ in followers]
    parts = {id_: id_.encode() for id_ in ids}
    assert world.reply(syncing(generation, leader, parts)).assignment == leader.encode()
    assert [reply[0].assignment for reply in synced] == [id_.encode() for id_ in followers]
    return generation, [leader, *followers]
