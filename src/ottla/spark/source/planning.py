"""What a micro-batch or a batch reads, and how it is cut into tasks. Pure: numbers in, numbers out.

Limits share the rows among partitions in proportion to what each has to offer, so that none
starves; tasks are made of about the same number of offsets.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from ottla.model.types import Offset, TopicPartition


class Range(NamedTuple):
    """Offsets of one partition from `start` up to before `end`."""

    place: TopicPartition
    start: Offset
    end: Offset

    @property
    def size(self) -> int:
        return self.end - self.start


def limited(ranges: list[Range], offsets_max: int) -> dict[TopicPartition, Offset]:
    """The ends of ranges that together have about `offsets_max` offsets, and never more.

    Every range that has something gets at least one offset while there are enough.
    """
    total = sum(one.size for one in ranges)
    if total <= offsets_max:
        return {one.place: one.end for one in ranges}
    # The longest wait first: with a limit below the number of partitions, all get their turn.
    offering = sorted(
        (one for one in ranges if one.size), key=lambda item: (-item.size, item.place)
    )
    first = min(len(offering), offsets_max)
    shares = dict.fromkeys((one.place for one in ranges), 0)
    shares |= dict.fromkeys((one.place for one in offering[:first]), 1)
    rest, others = offsets_max - first, total - len(offering)
    for one in offering:
        shares[one.place] += rest * (one.size - 1) // others if others else 0
    left = offsets_max - sum(shares.values())
    for one in offering:  # What rounding left over.
        if left and shares[one.place] < one.size:
            shares[one.place] += 1
            left -= 1
    return {one.place: one.start + shares[one.place] for one in ranges}


def limited_by_bytes(
    ranges: list[Range], bytes_max: int, bytes_per_offset: Mapping[TopicPartition, float]
) -> dict[TopicPartition, Offset]:
    """The ends of ranges that together have about `bytes_max` bytes; none gets no offset."""
    sizes = {one.place: one.size * bytes_per_offset.get(one.place, 1.0) for one in ranges}
    total = sum(sizes.values())
    if total <= bytes_max:
        return {one.place: one.end for one in ranges}
    part = bytes_max / total
    return {one.place: one.start + max(1, int(one.size * part)) for one in ranges if one.size}


def split(
    ranges: list[Range], *, partitions_min: int | None, records_max: int | None
) -> list[Range]:
    """Ranges cut into tasks: at least so many, none with more offsets than `records_max`."""
    ranges = [one for one in ranges if one.size > 0]
    if records_max is not None:
        ranges = [piece for one in ranges for piece in _cut(one, -(-one.size // records_max))]
    if partitions_min is None or len(ranges) >= partitions_min or not ranges:
        return ranges
    total = sum(one.size for one in ranges)
    # The largest are cut; one smaller than its fair part stays whole.
    whole = [one for one in ranges if one.size * partitions_min <= total]
    large = [one for one in ranges if one.size * partitions_min > total]
    wanted = partitions_min - len(whole)
    size = sum(one.size for one in large)
    pieces = {one: max(1, wanted * one.size // size) for one in large}
    for one in sorted(large, key=lambda item: item.size / pieces[item], reverse=True):
        if sum(pieces.values()) < wanted:
            pieces[one] += 1
    return sorted([*whole, *(piece for one in large for piece in _cut(one, pieces[one]))])


def _cut(one: Range, pieces: int) -> list[Range]:
    pieces = min(pieces, one.size)
    edges = [one.start + one.size * number // pieces for number in range(pieces + 1)]
    return [Range(one.place, low, high) for low, high in pairwise(edges)]
