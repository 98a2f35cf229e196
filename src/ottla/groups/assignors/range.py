"""The range assignor: each topic is cut into as many stretches as members read it.

Members with the same topics get the same partition numbers of all of them, so that topics which
are partitioned alike can be joined. Members are in the order of their instance ids, then ids.
"""

from collections.abc import Mapping

from ottla.groups.assignors.assignment import MemberSpec, Partitions, Sizes
from ottla.model.types import Uuid


def assign_ranges(members: Mapping[str, MemberSpec], sizes: Sizes) -> dict[str, Partitions]:
    ordered = sorted(members, key=lambda id_: _rank(id_, members[id_].instance_id))
    given: dict[str, set[tuple[Uuid, int]]] = {id_: set() for id_ in members}
    for topic, size in sizes.items():
        readers = [id_ for id_ in ordered if topic in members[id_].topics]
        start = 0
        for position, id_ in enumerate(readers):
            count = size // len(readers) + (position < size % len(readers))
            given[id_].update((topic, index) for index in range(start, start + count))
            start += count
    return {id_: frozenset(partitions) for id_, partitions in given.items()}


def _rank(member_id: str, instance_id: str | None) -> tuple[int, str]:
    return (0, instance_id) if instance_id is not None else (1, member_id)
