"""What administrators ask of groups: describe, list and delete them."""

from ottla.groups.classic_group import ClassicGroup, ClassicMember, ClassicState
from ottla.groups.offsets import Committed, forget
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
        dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        dead.error_message = f"Group {group_id} not found."
    return dead


def listed_classic(group: ClassicGroup) -> list_groups.ListedGroup:
    return list_groups.ListedGroup(group.id, group.protocol_type or "", group.state.value, CLASSIC)


def is_listed(group: list_groups.ListedGroup, request: list_groups.Request) -> bool:
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return (not states or group.group_state.lower() in states) and (
        not types or group.group_type.lower() in types
    )


def delete_classic(turn: Turn, group: ClassicGroup, committed: Committed) -> None:
    if not group.is_empty:
        raise Refusal(ErrorCode.NON_EMPTY_GROUP)
    for partition in list(committed):
        forget(turn, group.id, partition.topic, partition.partition)
    turn.write(GroupMetadataKey(group.id), None)
