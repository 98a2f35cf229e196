"""What administrators ask of groups: describe, list and delete them."""

from dataclasses import dataclass

from ottla.groups.classic.group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.offsets.offsets import Committed, forget
from ottla.groups.turn import Turn
from ottla.model.errors import ErrorCode, Refusal
from ottla.protocol.group_records import GroupMetadataKey
from ottla.protocol.messages import describe_groups, list_groups

NOT_FOUND_SINCE = 6  # In DescribeGroups; before, a group that nobody knows is called dead.
DEAD = "Dead"
CLASSIC = "classic"


def describe_classic(group: ClassicGroup) -> describe_groups.DescribedGroup:
    is_stable = group.state is ClassicState.STABLE
    return describe_groups.DescribedGroup(
        group_id=group.id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[_described(m, group.protocol, is_stable) for m in group.members.values()],
    )


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


def describe_unknown(group_id: str, version: int) -> describe_groups.DescribedGroup:
    dead = describe_groups.DescribedGroup(group_id=group_id, group_state=DEAD)
    if version >= NOT_FOUND_SINCE:
        refusal = Refusal(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        dead.error_code, dead.error_message = refusal.code, refusal.message
    return dead


def listed_classic(group: ClassicGroup) -> list_groups.ListedGroup:
    return list_groups.ListedGroup(group.id, group.protocol_type or "", group.state.value, CLASSIC)


@dataclass(frozen=True, slots=True)
class ListGroups:
    """Which groups to list: states and types in lower case, all where none are named.

    Made once for all coordinators and their groups, however long the lists of a request are.
    """

    states: frozenset[str]
    types: frozenset[str]

    @classmethod
    def of(cls, request: list_groups.Request) -> "ListGroups":
        states = frozenset(state.strip().lower() for state in request.states_filter)
        return cls(states, frozenset(kind.lower() for kind in request.types_filter))

    def has(self, group: list_groups.ListedGroup) -> bool:
        return (not self.states or group.group_state.lower() in self.states) and (
            not self.types or group.group_type.lower() in self.types
        )


def delete_classic(turn: Turn, group: ClassicGroup, committed: Committed) -> None:
    if not group.is_empty:
        raise Refusal(ErrorCode.NON_EMPTY_GROUP)
    for partition in list(committed):
        forget(turn, group.id, partition.topic, partition.partition)
    turn.write(GroupMetadataKey(group.id), None)
