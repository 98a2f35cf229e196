"""All groups of one kind in a coordinator, as the coordinator sees every kind."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ottla.groups.offsets.offsets import Committed
from ottla.groups.timers import TimerKey
from ottla.groups.turn import Turn
from ottla.protocol.messages import list_groups

# ruff: noqa: ANN401  Keys, values and descriptions are of the class that their kind has.


class Groups(Protocol):
    @property
    def by_id(self) -> Mapping[str, Any]: ...

    @property
    def timer_kinds(self) -> frozenset[str]:
        """Kinds of the timers that `time_came` serves."""

    def apply(self, key: Any, value: Any) -> None:
        """Fold one record of this kind; the only way to change durable state."""

    def loaded(self, turn: Turn) -> None:
        """The log is read: start the sessions of all members."""

    def time_came(self, turn: Turn, keys: Iterable[TimerKey]) -> None:
        """Timers of one group are due."""

    def listed(self) -> list[list_groups.ListedGroup]: ...

    def describe(self, turn: Turn, group_id: str, version: int, /) -> Any:
        """The description in the kind's own API, also of a group that is not found."""

    def delete(self, turn: Turn, group_id: str, committed: Committed) -> None:
        """Write the end of a group and of its offsets; Refusal unless it is empty."""

    def expire(self, turn: Turn, group_id: str, committed: Committed) -> None:
        """Write the end of expired offsets, and of an empty group that keeps none."""
