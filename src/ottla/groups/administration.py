"""What administrators ask of groups of all kinds."""

from dataclasses import dataclass

from ottla.protocol.messages import list_groups


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
