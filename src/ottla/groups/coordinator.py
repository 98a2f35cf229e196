"""The group coordinator: a pure state machine over one partition of `__consumer_offsets`.

Commands are the wire's own requests with who sent them, and a few of the broker's own. A Refusal
in place of a response is what the handler turns into one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ottla.groups.administration import ListGroups
from ottla.groups.classic import requests as classic_requests
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.consumer import membership as consumer_membership
from ottla.groups.consumer.group import LEFT_FOR_A_WHILE, ConsumerGroup
from ottla.groups.consumer.requests import check_request
from ottla.groups.group_table import GroupTable
from ottla.groups.kind import Groups
from ottla.groups.mixed.migration import fence, let_go, upgrade
from ottla.groups.offsets import requests as offset_requests
from ottla.groups.settings import ConsumerTimes, GroupSettings
from ottla.groups.timers import TimerKey, Timers
from ottla.groups.topics import CompileExpression, NoTopics, Topics, no_expressions
from ottla.groups.turn import Around, GroupCommand, Turn, admit_all
from ottla.model.errors import ErrorCode, Refusal
from ottla.model.machine import Decision, Producer, Ticket, Verdict
from ottla.model.types import Monotonic, Offset, WallTime
from ottla.protocol.group_records import GroupMetadataKey, GroupRecord
from ottla.protocol.messages import (
    consumer_group_heartbeat,
    delete_groups,
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)

RETRY_MS = 500  # Until a timer whose records were refused fires again.


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
        consumer_times: Callable[[str], ConsumerTimes] = lambda _: ConsumerTimes(),
        admit: Callable[[Sequence[GroupRecord]], None] = admit_all,
    ) -> None:
        """`admit` raises Refusal for records that the log would refuse at this moment."""
        self._table = table = GroupTable()
        self.groups, self.offsets, self.consumers = table.classic, table.offsets, table.consumers
        self._timers = Timers()
        self._around = Around(
            settings,
            self._timers,
            wall,
            new_id,
            topics or NoTopics(),
            compile_expression,
            consumer_times,
            admit,
        )
        self._due: dict[str, list[TimerKey]] = {}  # By group; what the last ticks left over.
        self._commands: dict[type, Callable[[Turn, Ticket, GroupCommand], None]] = {
            join_group.Request: partial(classic_requests.answer_join, table),
            sync_group.Request: partial(classic_requests.answer_sync, table),
            heartbeat.Request: partial(classic_requests.answer_heartbeat, table),
            leave_group.Request: partial(classic_requests.answer_leave, table),
            offset_commit.Request: partial(offset_requests.answer_commit, table),
            offset_fetch.OffsetFetchRequestGroup: partial(offset_requests.answer_fetch, table),
            offset_delete.Request: partial(offset_requests.answer_delete, table),
            ExpireOffsets: partial(offset_requests.expire, table),
            TopicsDeleted: partial(offset_requests.forget_topics, table),
            ListGroups: self._list,
            DescribeGroup: partial(self._describe, table.classics),
            DeleteGroup: self._delete,
            consumer_group_heartbeat.Request: self._consumer_heartbeat,
            DescribeConsumerGroup: partial(self._describe, table.consumers),
            Loaded: self._loaded,
            TopicsChanged: self._topics_changed,
        }

    def decide(
        self, ticket: Ticket, command: GroupCommand, now: Monotonic
    ) -> Decision[GroupRecord, Any]:
        turn = Turn(self._around, now)
        turn.decision.scope = getattr(command.request, "group_id", None)
        try:
            self._commands[type(command.request)](turn, ticket, command)
        except Refusal as refusal:
            turn.decision.records.clear()  # A request is done as a whole, or not at all.
            turn.decision.on_append.clear()
            turn.reply(ticket, refusal)
        return turn.decision

    def tick(self, now: Monotonic) -> Decision[GroupRecord, Any]:
        """Decide what is due of one group: groups share neither a batch nor its failure."""
        for key in self._timers.due(now):
            self._due.setdefault(key.group_id, []).append(key)
        turn = Turn(self._around, now)
        if not self._due:
            return turn.decision
        group_id = next(iter(self._due))
        due = self._due.pop(group_id)
        turn.decision.scope = group_id
        for key in due:
            self._timers.set(key, Monotonic(now + RETRY_MS))  # If the records are refused.
            turn.cancel_timer(*key)
        for groups in self._table.kinds:
            groups.time_came(turn, [key for key in due if key.kind in groups.timer_kinds])
        return turn.decision

    def next_deadline(self) -> Monotonic | None:
        if self._due:
            return Monotonic(0)
        return self._timers.next_deadline()

    def apply(self, offset: Offset, record: GroupRecord, producer: Producer | None) -> None:
        self._table.apply(offset, record, producer)

    def ended(self, producer: Producer, verdict: Verdict) -> None:
        self._table.ended(producer, verdict)

    def _loaded(self, turn: Turn, ticket: Ticket, _: GroupCommand) -> None:
        for groups in self._table.kinds:
            groups.loaded(turn)
        turn.reply(ticket, None)

    def _describe(self, groups: Groups, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        turn.reply(ticket, groups.describe(turn, command.request.group_id, command.version))

    def _list(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        wanted: ListGroups = command.request
        listed = [one for groups in self._table.kinds for one in groups.listed()]
        turn.reply(ticket, [one for one in listed if wanted.has(one)])

    def _delete(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        group_id = command.request.group_id
        turn.decision.is_atomic = False  # What is left of a group can be deleted again.
        committed = self.offsets.get(group_id, {})
        self._table.kind_of(group_id).delete(turn, group_id, committed)
        turn.reply(ticket, delete_groups.DeletableGroupResult(group_id))

    def _consumer_heartbeat(self, turn: Turn, ticket: Ticket, command: GroupCommand) -> None:
        request: consumer_group_heartbeat.Request = command.request
        if request.member_epoch == 0 and not request.member_id and command.version == 0:
            request.member_id = turn.around.new_id()  # Since version 1 members choose their ids.
        check_request(request, turn.settings.consumer_assignors)
        if request.member_epoch < 0:
            turn.reply(ticket, self._consumer_leaves(turn, request))
            return
        group = self.consumers.by_id.get(request.group_id)
        classic = None
        if group is None:
            classic = self.groups.get(request.group_id)
            group = self._new_consumer_group(turn, request, classic)
        turn.reply(ticket, consumer_membership.heartbeat(turn, command, group))
        if classic is not None:
            let_go(turn, classic)

    def _new_consumer_group(
        self, turn: Turn, request: consumer_group_heartbeat.Request, classic: ClassicGroup | None
    ) -> ConsumerGroup:
        if request.member_epoch != 0:
            raise self._not_found(request.group_id)
        if classic is not None and not classic.is_empty:
            return upgrade(turn, classic, request.instance_id)
        if classic is not None and classic.is_recorded:
            turn.write(GroupMetadataKey(request.group_id), None)
        return ConsumerGroup(request.group_id)

    def _consumer_leaves(
        self, turn: Turn, request: consumer_group_heartbeat.Request
    ) -> consumer_group_heartbeat.Response:
        group = self.consumers.by_id.get(request.group_id)
        if group is None:
            raise self._not_found(request.group_id)
        member = consumer_membership.who_leaves(request, group)
        if request.member_epoch == LEFT_FOR_A_WHILE:
            consumer_membership.leave_for_a_while(turn, group, member)
        else:
            fence(turn, group, [member])
        return consumer_group_heartbeat.Response(
            member_id=request.member_id, member_epoch=request.member_epoch
        )

    def _not_found(self, group_id: str) -> Refusal:
        what = "is not a consumer group" if group_id in self.groups else "not found"
        return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")

    def _topics_changed(self, turn: Turn, ticket: Ticket, _: GroupCommand) -> None:
        self.consumers.topics_changed()
        turn.reply(ticket, None)
