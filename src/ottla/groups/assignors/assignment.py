"""What an assignor is given, and what it gives back."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.model.types import Uuid

Partitions = frozenset[tuple[Uuid, int]]


class MemberSpec(NamedTuple):
    instance_id: str | None
    topics: frozenset[Uuid]  # Those of its topics that exist.
    target: Partitions  # What it was last meant to have.


Sizes = Mapping[Uuid, int]  # Partitions of each topic that someone reads.
Assignor = Callable[[Mapping[str, MemberSpec], Sizes], dict[str, Partitions]]
