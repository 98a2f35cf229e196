"""The uniform assignor: everyone has as many partitions as the others, and keeps what it had.

First each keeps of its last target what it may have and not more than its share; then whatever is
free goes to whoever has least; last, where topics differ between members, partitions move from
those with more to those with fewer as long as that evens things out.
"""

from collections.abc import Mapping

from ottla.groups.assignors.assignment import MemberSpec, Partitions, Sizes
from ottla.model.types import Uuid

Given = dict[str, list[tuple[Uuid, int]]]


def assign_uniformly(members: Mapping[str, MemberSpec], sizes: Sizes) -> dict[str, Partitions]:
    if not members:
        return {}
    every = [(topic, index) for topic in sorted(sizes) for index in range(sizes[topic])]
    given = _kept(members, sizes, len(every))
    taken = {partition for partitions in given.values() for partition in partitions}
    _fill(members, given, [partition for partition in every if partition not in taken])
    _even_out(members, given)
    return {id_: frozenset(partitions) for id_, partitions in given.items()}


def _kept(members: Mapping[str, MemberSpec], sizes: Sizes, total: int) -> Given:
    """Of what it had, each keeps its share; a share is one larger for the first few."""
    larger_left = total % len(members)
    share = total // len(members)
    is_same = len({spec.topics for spec in members.values()}) == 1
    given: Given = {}
    taken: set[tuple[Uuid, int]] = set()
    for id_ in sorted(members, key=lambda id_: (-len(members[id_].target), id_)):
        spec = members[id_]
        mine = sorted(
            (topic, index)
            for topic, index in spec.target - taken
            if topic in spec.topics and index < sizes.get(topic, 0)
        )
        if is_same:
            allowed = share
            if len(mine) > share and larger_left:
                allowed, larger_left = share + 1, larger_left - 1
            mine = mine[:allowed]
        taken.update(mine)
        given[id_] = mine
    return given


def _fill(members: Mapping[str, MemberSpec], given: Given, free: list[tuple[Uuid, int]]) -> None:
    readers: dict[Uuid, list[str]] = {}
    for id_ in sorted(members):
        for topic in members[id_].topics:
            readers.setdefault(topic, []).append(id_)
    for partition in free:
        able = readers.get(partition[0])
        if able:
            given[min(able, key=lambda id_: (len(given[id_]), id_))].append(partition)


def _even_out(members: Mapping[str, MemberSpec], given: Given) -> None:
    """Each move lowers the sum of squares, so it ends."""
    is_moving = True
    while is_moving:
        is_moving = False
        for id_ in sorted(given, key=lambda id_: -len(given[id_])):
            for partition in list(given[id_]):
                able = [i for i in sorted(members) if partition[0] in members[i].topics]
                least = min(able, key=lambda i: (len(given[i]), i))
                if len(given[least]) + 1 < len(given[id_]):
                    given[id_].remove(partition)
                    given[least].append(partition)
                    is_moving = True
