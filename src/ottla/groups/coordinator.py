"""The group coordinator: a pure state machine over one partition of `__consumer_offsets`.

Commands are the wire's own requests with who sent them, and a few of the broker's own. A Refusal
in place of a response is what the handler turns into one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ottla.groups import administration, classic_membership, consumer_membership, offsets
from ottla.groups.classic_group import ClassicGroup
from ottla.groups.classic_joining import check_join, join
from ottla.groups.classic_rebalance import (
    INITIAL,
    JOIN,
    SESSION,
    SYNC,
    complete,
    expect_heartbeat,
    initial_delay_over,
    prepare,
    session_is_over,
    sync_is_late,
)
from ottla.groups.consumer_group import ConsumerGroup
from ottla.groups.consumer_groups import ConsumerGroups
from ottla.groups.consumer_membership import CONSUMER_SESSION, REVOCATION
from ottla.groups.consumer_requests import check_request
from ottla.groups.offsets import Committed
from ottla.groups.settings import GroupSettings
from ottla.groups.timers import TimerKey, Timers
from ottla.groups.topics import CompileExpression, NoTopics, Topics, no_expressions
from ottla.groups.turn import Around, GroupCommand, Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Decision, Ticket
from ottla.model.types import Monotonic, Offset, TopicPartition, WallTime
from ottla.protocol.group_records import (
    GroupMetadataKey,
    GroupRecord,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
)
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    delete_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)

# ruff: noqa: ANN401  Replies are of many classes.

MEMBERS_SINCE = 3  # In LeaveGroup: several members at once.
GROUP_NOT_FOUND_SINCE = 9  # In OffsetCommit.


@dataclass(frozen=True, slots=True)
class DescribeGroup:
    group_id: str


@dataclass(frozen=True, slots=True)
class DescribeConsumerGroup:
    group_id: str


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    group_id: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """The log is read: from now on its members have to be heard of."""


@dataclass(frozen=True, slots=True)
class ExpireOffsets:
    """It is time to look for offsets that nobody needs any more."""


@dataclass(frozen=True, slots=True)
class TopicsChanged:
    """Topics came, went or grew."""


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    topics: frozenset[str]


class GroupCoordinator:
    def __init__(
        self,
        settings: GroupSettings,
        *,
        wall: Callable[[], WallTime],
        new_id: Callable[[], str],
        topics: Topics | None = None,
        compile_expression: CompileExpression = no_expressions,
    ) -> None:
        self.groups: dict[str, ClassicGroup] = {}
        self.offsets: dict[str, Committed] = {}
        self._timers = Timers()
        self.consumers = ConsumerGroups()
        self._around = Around(
            settings, self._timers, wall, new_id, topics or NoTopics(), compile_expression
        )
        self._commands: dict[type, Callable[[Turn, Ticket, GroupCommand], None]] = {
            join_group.Request: self._join,
            sync_group.Request: self._sync,
            heartbeat.Request: self._heartbeat,
            leave_group.Request: self._leave,
            offset_commit.Request: self._commit,
            offset_fetch.OffsetFetchRequestGroup: self._fetch,
            offset_delete.Request: self._delete_offsets,
            list_groups.Request: self._list,
            DescribeGroup: self._describe,
            DeleteGroup: self._delete,
            consumer_group_heartbeat.Request: self._consumer_heartbeat,
            DescribeConsumerGroup: self._describe_consumers,
            Loaded: self._loaded,
            TopicsChanged: self._topics_changed,
            ExpireOffsets: self._expire,
            TopicsDeleted: self._topics_deleted,
        }

    def decide(
        self, ticket: Ticket, command: GroupCommand, now: Monotonic
    ) -> Decision[GroupRecord, Any]:
        turn = Turn(self._around, now)
        try:
            self._commands[type(command.request)](turn, ticket, command)
        except Refusal as refusal:
            turn.decision.records.clear()  # A request is done as a whole, or not at all.
            turn.reply(ticket, refusal)
        return turn.decision

    def tick(self, now: Monotonic) -> Decision[GroupRecord, Any]:
        turn = Turn(self._around, now)
        for key in list(self._timers.due(now)):
            group = self.groups.get(key.group_id)
            if key.kind in (CONSUMER_SESSION, REVOCATION):
                self.consumers.time_came(turn, key)
            elif group is not None:
                self._time_came(turn, group, key)
        return turn.decision

    def next_deadline(self) -> Monotonic | None:
        return self._timers.next_deadline()

    def apply(self, offset: Offset, record: GroupRecord) -> None:  # noqa: ARG002
        key, value = record
        match key:
            case OffsetCommitKey() | LegacyOffsetCommitKey():
                self._apply_offset(key.group, TopicPartition(key.topic, key.partition), value)
            case GroupMetadataKey():
                if value is None:
                    self.groups.pop(key.group, None)
                else:
                    self._classic(key.group).restore(value)
            case _:
                self.consumers.apply(key, value)
                if key.group_id in self.consumers.by_id:
                    self.groups.pop(key.group_id, None)  # Its offsets came first.
                elif key.group_id in self.offsets:
                    self._classic(key.group_id)

    def _loaded(self, turn: Turn, ticket: Ticket, _: GroupCommand) -> None:
        for group in self.groups.values():
            for member in group.members.values():
                expect_heartbeat(turn, group, member)
            if len(group.members) > turn.settings.size_max:
                prepare(turn, group)  # The limit was lowered: not all may join again.
        self.consumers.loaded(turn)
        turn.reply(ticket, None)

    def _time_came(self, turn: Turn, group: ClassicGroup, key: TimerKey) -> None:
        if key.kind == SESSION:
            session_is_over(turn, group, key.member_id)
            self._drop_if_void(group)
        elif key.kind == INITIAL:
            initial_delay_over(turn, group)
        elif key.kind == JOIN:
            complete(turn, group)
        elif key.kind == SYNC:
            sync_is_late(turn, group)

    def _apply_offset(self, group_id: str, partition: TopicPartition, value: Any) -> None:
        if value is not None:
            if group_id not in self.consumers.by_id:
                self._classic(group_id)
            self.offsets.setdefault(group_id, {})[partition] = value
            return
        committed = self.offsets.get(group_id)
        if committed is not None:
            committed.pop(partition, None)
            if not committed:
                del self.offsets[group_id]
                if group_id in self.groups:
                    self._drop_if_void(self.groups[group_id])

    def _classic(self, group_id: str) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def _drop_if_void(self, group: ClassicGroup) -> None:
        """A group that is nowhere but in memory, and that nobody is in, need not be there."""
        is_used = group.members or group.pending or group.id in self.offsets
        if not is_used and not group.is_recorded and group.is_empty:
            self.groups.pop(group.id, None)

    def _group(self, group_id: str, code: ErrorCode) -> ClassicGroup:
        group = self.groups.get(group_id)
        if group is None:
            raise Refusal(code)
        return group

    def _join(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        request: join_group.Request = command.request
        check_join(turn, request)
        if request.group_id in self.consumers.by_id:
            self._give_way(turn, request.group_id)
        if request.group_id not in self.groups and request.member_id:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID)
        group = self._classic(request.group_id)
        try:
            join(turn, ticket, command, group)
        finally:
            self._drop_if_void(group)

    def _sync(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        group = self._group(command.request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        classic_membership.sync(turn, ticket, command.request, group)

    def _heartbeat(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        group = self._group(command.request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        code = classic_membership.heartbeat(turn, command.request, group)
        turn.reply(ticket, heartbeat.Response(error_code=code))

    def _leave(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        request: leave_group.Request = command.request
        members = request.members
        if command.version < MEMBERS_SINCE:
            members = [leave_group.MemberIdentity(request.member_id)]
        group = self.groups.get(request.group_id)
        if group is None:
            unknown = ErrorCode.UNKNOWN_MEMBER_ID
            results = [
                leave_group.MemberResponse(one.member_id, one.group_instance_id, unknown)
                for one in members
            ]
        else:
            results = classic_membership.leave(turn, members, group)
            self._drop_if_void(group)
        if command.version < MEMBERS_SINCE:
            turn.reply(ticket, leave_group.Response(error_code=results[0].error_code))
        else:
            turn.reply(ticket, leave_group.Response(members=results))

    def _commit(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        request: offset_commit.Request = command.request
        group = self.groups.get(request.group_id)
        if request.group_id in self.consumers.by_id:
            self.consumers.check_commit(request, command.version)
        elif group is not None:
            offsets.check_classic_commit(group, request)
            member = group.members.get(request.member_id)
            if member is not None:
                expect_heartbeat(turn, group, member)
        elif request.generation_id_or_member_epoch >= 0:
            is_new = command.version >= GROUP_NOT_FOUND_SINCE
            raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION)
        turn.reply(ticket, offsets.commit(turn, request))

    def _fetch(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        self.consumers.check_fetch(command.request)
        committed = self.offsets.get(command.request.group_id, {})
        turn.reply(ticket, offsets.fetch(command.request, committed))

    def _delete_offsets(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        request: offset_delete.Request = command.request
        committed = self.offsets.get(request.group_id, {})
        consumers = self.consumers.by_id.get(request.group_id)
        if consumers is not None:
            reads = consumers.subscribed_topics().__contains__
            turn.reply(ticket, offsets.delete(turn, request, committed, reads))
            return
        group = self._group(request.group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if not group.is_empty and not group.is_consumers:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP)
        subscribed = group.subscribed_topics()

        def is_subscribed(topic: str) -> bool:
            return topic in subscribed if subscribed is not None else group.is_consumers

        turn.reply(ticket, offsets.delete(turn, request, committed, is_subscribed))

    def _describe(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        group = self.groups.get(command.request.group_id)
        if group is None:
            unknown = administration.describe_unknown(command.request.group_id, command.version)
            turn.reply(ticket, unknown)
        else:
            turn.reply(ticket, administration.describe_classic(group))

    def _list(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        listed = [administration.listed_classic(group) for group in self.groups.values()]
        listed += self.consumers.listed()
        wanted = [one for one in listed if administration.is_listed(one, command.request)]
        turn.reply(ticket, wanted)

    def _delete(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        group_id = command.request.group_id
        if group_id in self.consumers.by_id:
            self.consumers.delete(turn, group_id, self.offsets.get(group_id, {}))
            turn.reply(ticket, delete_groups.DeletableGroupResult(group_id))
            return
        group = self._group(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        administration.delete_classic(turn, group, self.offsets.get(group_id, {}))
        turn.reply(ticket, delete_groups.DeletableGroupResult(group_id))

    def _expire(self, turn: Turn, ticket: Ticket, _: GroupCommand) -> None:
        now, retention_ms = turn.wall, turn.settings.offsets_retention_ms
        for group in self.groups.values():
            committed = self.offsets.get(group.id, {})
            gone = list(offsets.expired(group, committed, now, retention_ms))
            for partition in gone:
                offsets.forget(turn, group.id, partition.topic, partition.partition)
            if group.is_empty and len(gone) == len(committed) and group.is_recorded:
                turn.write(GroupMetadataKey(group.id), None)
        for group_id in self.consumers.by_id:
            self.consumers.expire(turn, group_id, self.offsets.get(group_id, {}))
        turn.reply(ticket, None)

    def _consumer_heartbeat(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        request: consumer_group_heartbeat.Request = command.request
        is_joining = request.member_epoch == 0
        if is_joining and not request.member_id and command.version == 0:
            request.member_id = turn.around.new_id()  # Since version 1 members choose their ids.
        check_request(request, turn.settings.consumer_assignors)
        group = self.consumers.by_id.get(request.group_id)
        if group is None:
            classic = self.groups.get(request.group_id)
            is_free = classic is None or (classic.is_empty and not classic.pending)
            if not is_joining or not is_free:
                kind = "found" if classic is None else "a consumer group"
                message = f"Group {request.group_id} is not {kind}."
                raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND, message)
            if classic is not None and classic.is_recorded:
                turn.write(GroupMetadataKey(request.group_id), None)
            group = ConsumerGroup(request.group_id)
        turn.reply(ticket, consumer_membership.heartbeat(turn, command, group))

    def _give_way(self, turn: Turn, group_id: str) -> None:
        """A classic member wants to join what is a consumer group: only if nobody is in it."""
        if not self.consumers.by_id[group_id].is_empty:
            raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        self.consumers.write_end(turn, group_id)

    def _describe_consumers(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        assignor = turn.settings.consumer_assignors[0]
        turn.reply(ticket, self.consumers.describe(turn, command.request.group_id, assignor))

    def _topics_changed(self, turn: Turn, ticket: Ticket, _: GroupCommand) -> None:
        self.consumers.topics_changed()
        turn.reply(ticket, None)

    def _topics_deleted(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        topics = command.request.topics
        for group_id, committed in self.offsets.items():
            for partition in committed:
                if partition.topic in topics:
                    offsets.forget(turn, group_id, partition.topic, partition.partition)
        turn.reply(ticket, None)
