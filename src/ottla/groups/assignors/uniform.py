"""The uniform assignor: everyone has as many partitions as the others, and keeps what it had.

First each keeps of its last target what it may have and not more than its share; then whatever is
free goes to whoever has least; last, where topics differ between members, partitions move from
those with more to those with fewer as long as that evens things out.
"""

from collections.abc import Mapping
from heapq import heapify, heapreplace

from ottla.groups.assignors.assignment import MemberSpec, Partitions, Sizes
from ottla.model.types import Uuid

Given = dict[str, list[tuple[Uuid, int]]]


def assign_uniformly(members: Mapping[str, MemberSpec], sizes: Sizes) -> dict[str, Partitions]:
    if not members:
        return {}
    every = [(topic, index) for topic in sorted(sizes) for index in range(sizes[topic])]
    given = _kept(members, sizes, len(every))
    taken = {partition for partitions in given.values() for partition in partitions}
    readers = _readers(members)
    _fill(readers, given, [partition for partition in every if partition not in taken])
    _even_out(readers, given)
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


def _readers(members: Mapping[str, MemberSpec]) -> dict[Uuid, list[str]]:
    readers: dict[Uuid, list[str]] = {}
    for id_ in sorted(members):
        for topic in members[id_].topics:
            readers.setdefault(topic, []).append(id_)
    return readers


def _fill(readers: Mapping[Uuid, list[str]], given: Given, free: list[tuple[Uuid, int]]) -> None:
    """Shares only grow here, so a heap whose top is out of date is put right when it is used."""
    heaps = {topic: [(len(given[id_]), id_) for id_ in ids] for topic, ids in readers.items()}
    for heap in heaps.values():
        heapify(heap)
    for partition in free:
        heap = heaps.get(partition[0], [])
        while heap and heap[0][0] != len(given[heap[0][1]]):
            heapreplace(heap, (len(given[heap[0][1]]), heap[0][1]))
        if heap:
            size, id_ = heap[0]
            given[id_].append(partition)
            heapreplace(heap, (size + 1, id_))


def _even_out(readers: Mapping[Uuid, list[str]], given: Given) -> None:
    """Each move lowers the sum of squares, so it ends."""
    least: dict[Uuid, str] = {}  # By topic, who has fewest partitions of those who read it.
    is_moving = True
    while is_moving:
        is_moving = False
        for id_ in sorted(given, key=lambda id_: -len(given[id_])):
            for partition in list(given[id_]):
                topic = partition[0]
                if topic not in least:
                    least[topic] = min(readers[topic], key=lambda i: (len(given[i]), i))
                if len(given[least[topic]]) + 1 < len(given[id_]):
                    given[id_].remove(partition)
                    given[least[topic]].append(partition)
                    least.clear()
                    is_moving = True
