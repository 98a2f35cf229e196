"""All classic groups of a coordinator: recorded ones, and those that exist only in memory.

A group that is not recorded exists as long as it has offsets or somebody wants to join it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.classic.rebalance import (
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
from ottla.groups.mixed.migration import CONVERTED
from ottla.groups.offsets import offsets
from ottla.groups.offsets.offsets import Committed
from ottla.groups.timers import TimerKey
from ottla.groups.turn import Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.group_records import GroupMetadataKey, GroupMetadataValue
from ottla.protocol.messages import describe_groups, list_groups

NOT_FOUND_SINCE: Final = 6  # In DescribeGroups; before, a group that nobody knows is called dead.
DEAD: Final = "Dead"
CLASSIC: Final = "classic"


class ClassicGroups:
    timer_kinds: Final = frozenset({SESSION, INITIAL, JOIN, SYNC, CONVERTED})

    def __init__(self, committed: Mapping[str, Committed]) -> None:
        """`committed` has the offsets of all groups, by group id."""
        self.by_id: dict[str, ClassicGroup] = {}
        self._committed = committed

    def get_or_new(self, group_id: str) -> ClassicGroup:
        group = self.by_id.get(group_id)
        if group is None:
            group = self.by_id[group_id] = ClassicGroup(group_id)
        return group

    def get(self, group_id: str, code: ErrorCode) -> ClassicGroup:
        group = self.by_id.get(group_id)
        if group is None:
            raise Refusal(code)
        return group

    def drop_if_void(self, group: ClassicGroup) -> None:
        """A group that is nowhere but in memory, and that nobody is in, need not be there."""
        is_used = group.members or group.pending or group.id in self._committed
        if not is_used and not group.is_recorded and group.is_empty:
            self.by_id.pop(group.id, None)

    def apply(self, key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
        if value is None:
            self.by_id.pop(key.group, None)
        else:
            self.get_or_new(key.group).restore(value)

    def loaded(self, turn: Turn) -> None:
        for group in self.by_id.values():
            for member in group.members.values():
                expect_heartbeat(turn, group, member)
            # The limit was lowered, so that not all may join again; or it was lost while it became
            # a classic group.
            if group.is_converted or len(group.members) > turn.settings.size_max:
                prepare(turn, group)

    def time_came(self, turn: Turn, keys: Iterable[TimerKey]) -> None:
        for key in keys:
            group = self.by_id.get(key.group_id)
            if group is None:
                continue
            if key.kind == SESSION:
                session_is_over(turn, group, key.member_id)
                self.drop_if_void(group)
            elif key.kind == INITIAL:
                initial_delay_over(turn, group)
            elif key.kind == JOIN:
                complete(turn, group)
            elif key.kind == SYNC:
                sync_is_late(turn, group)
            elif key.kind == CONVERTED and group.state is ClassicState.STABLE:
                prepare(turn, group)

    def listed(self) -> list[list_groups.ListedGroup]:
        return [
            list_groups.ListedGroup(group.id, group.protocol_type or "", group.state.value, CLASSIC)
            for group in self.by_id.values()
        ]

    def describe(self, _: Turn, group_id: str, version: int) -> describe_groups.DescribedGroup:
        group = self.by_id.get(group_id)
        if group is None:
            return _unknown(group_id, version)
        is_stable = group.state is ClassicState.STABLE
        return describe_groups.DescribedGroup(
            group_id=group.id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol or "") if is_stable else "",
            members=[_described(m, group.protocol, is_stable) for m in group.members.values()],
        )

    def delete(self, turn: Turn, group_id: str, committed: Committed) -> None:
        if not self.by_id[group_id].is_empty:
            raise Refusal(ErrorCode.NON_EMPTY_GROUP)
        for partition in list(committed):
            offsets.forget(turn, group_id, partition.topic, partition.partition)
        turn.write(GroupMetadataKey(group_id), None)

    def expire(self, turn: Turn, group_id: str, committed: Committed) -> None:
        group = self.by_id[group_id]
        gone = list(
            offsets.expired(group, committed, turn.wall, turn.settings.offsets_retention_ms)
        )
        for partition in gone:
            offsets.forget(turn, group_id, partition.topic, partition.partition)
        if group.is_empty and len(gone) == len(committed) and group.is_recorded:
            turn.write(GroupMetadataKey(group_id), None)


def _unknown(group_id: str, version: int) -> describe_groups.DescribedGroup:
    dead = describe_groups.DescribedGroup(group_id=group_id, group_state=DEAD)
    if version >= NOT_FOUND_SINCE:
        refusal = Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        dead.error_code, dead.error_message = refusal.code, refusal.message
    return dead


def _described(
    member: ClassicMember, protocol: str | None, is_stable: bool
) -> describe_groups.DescribedGroupMember:
    return describe_groups.DescribedGroupMember(
        member.id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.metadata(protocol) if is_stable else b"",
        member.assignment,
    )
