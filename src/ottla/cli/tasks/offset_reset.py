"""Implementation of `ottla groups reset-offsets`: new offsets of a group, and checks.

Files have Kafka's form: `topic,partition,offset` per line, optionally preceded by the group.
"""

import csv
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import timedelta

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.timestamps import UNIT_MS, parse_moment
from ottla.cli.views.terminal import note, plural, say, show_json, show_table
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.groups import Committed, Groups, UnknownGroup
from ottla.client.metadata import UnknownPartition
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.model.types import Millis, Offset, TopicPartition, WallTime

Offsets = dict[TopicPartition, Offset]

SHORT = re.compile(r"(\d+)(ms|s|m|h|d|w)")
ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


@dataclass(frozen=True, slots=True)
class Target:
    """Target of the reset; exactly one field is set."""

    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_offset: Offset | None = None
    shift_by: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    from_file: str | None = None

    def check(self) -> None:
        names = [field.name for field in fields(self)]
        given = [name for name in names if getattr(self, name) not in (None, False)]
        if len(given) != 1:
            options = [f"--{name.replace('_', '-')}" for name in names]
            raise Misuse(f"give one of {', '.join(options[:-1])} and {options[-1]}")
        if self.by_duration is not None:
            parse_duration(self.by_duration)


@dataclass(frozen=True, slots=True)
class Selection:
    """Partitions: `topic`, `topic:0,1`, or all with a committed offset."""

    topics: list[str]
    all_topics: bool

    def check(self, target: Target) -> None:
        if target.from_file is not None:
            if self.topics or self.all_topics:
                raise Misuse("the file says which partitions: give no --topic or --all-topics")
        elif bool(self.topics) == self.all_topics:
            raise Misuse("give --topic (may be repeated) or --all-topics")


async def reset(
    cluster: Cluster,
    group: str,
    target: Target,
    selection: Selection,
    *,
    is_executed: bool,
    export: bool,
    as_json: bool,
) -> None:
    groups = Groups(cluster)
    await _check_inactive(groups, group, is_executed=is_executed)
    committed = await groups.offsets(group)
    plan = await make_plan(cluster, group, target, selection, committed)
    if not plan:
        raise ClientError(f"group {group!r} has committed nothing: name topics with --topic")
    if is_executed:
        await groups.commit(group, plan)
    if export:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows((*place, offset) for place, offset in plan.items())
    elif as_json:
        show_json(_as_json(group, plan, committed, is_executed=is_executed))
    else:
        _show(group, plan, committed, is_executed=is_executed)
    if not is_executed:
        note("Nothing was changed: run it again with --execute.")


async def make_plan(
    cluster: Cluster,
    group: str,
    target: Target,
    selection: Selection,
    committed: dict[TopicPartition, Committed],
) -> Offsets:
    """The new offset of each partition, limited to what the partition holds."""
    if target.from_file is not None:
        wanted = _read_file(target.from_file, group)
        await _check_places(cluster, wanted)
        return await _within(cluster, wanted)
    places = await _selected(cluster, selection, committed)
    if target.to_earliest or target.to_latest:
        return await _found(cluster, places, EARLIEST if target.to_earliest else LATEST)
    if target.to_datetime is not None or target.by_duration is not None:
        return await _at_time(cluster, places, _moment(target, cluster.clock.wall()))
    if target.to_offset is not None:
        return await _within(cluster, dict.fromkeys(places, target.to_offset))
    current = {
        place: committed[place].offset + (target.shift_by or 0)
        for place in places
        if place in committed
    }
    for place in places:
        if place not in committed:
            note(f"ottla: {place} is left out: the group has committed nothing for it")
    return await _within(cluster, current)


def parse_file(lines: Iterable[str], group: str, name: str) -> Offsets:
    """Kafka's CSV; only the lines of this group count."""
    found: Offsets = {}
    for number, row in enumerate(csv.reader(lines), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) == 4:
            if cells[0] != group:
                continue
            cells = cells[1:]
        if len(cells) != 3 or not cells[1].isdecimal() or not cells[2].isdecimal():
            raise Misuse(f"{name}, line {number}: expected topic,partition,offset")
        found[TopicPartition(cells[0], int(cells[1]))] = int(cells[2])
    if not found:
        raise Misuse(f"{name} holds no offsets for group {group!r}")
    return found


def _read_file(name: str, group: str) -> Offsets:
    with open(name, newline="") as file:
        return parse_file(file, group, name)


def parse_duration(text: str) -> Millis:
    """`90m`, or ISO 8601 as in Kafka's tool: `PT1H30M`."""
    if short := SHORT.fullmatch(text):
        return int(short[1]) * UNIT_MS[short[2]]
    iso = ISO.fullmatch(text)
    if iso is None or not any(iso.groups()):
        raise Misuse(f"--by-duration {text!r}: expected a time like 90m, 2h, 1d or PT1H30M")
    days, hours, minutes, seconds = (float(part or 0) for part in iso.groups())
    span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    return int(span.total_seconds() * 1000)


def _moment(target: Target, now: WallTime) -> WallTime:
    if target.by_duration is not None:
        return WallTime(max(now - parse_duration(target.by_duration), 0))
    assert target.to_datetime is not None, "one of them was given"
    return parse_moment(target.to_datetime, now)


async def _check_inactive(groups: Groups, group: str, *, is_executed: bool) -> None:
    try:
        described = await groups.describe(group)
    except UnknownGroup:
        note(f"ottla: there is no group {group!r} yet: this makes it")
        return
    if not described.is_active:
        return
    sentence = (
        f"group {group!r} is {described.state} with {plural(len(described.members), 'member')}:"
        " its offsets can be reset only while nobody reads; stop its consumers first"
    )
    if is_executed:
        raise ClientError(sentence)
    note(f"ottla: {sentence}")


async def _selected(
    cluster: Cluster, selection: Selection, committed: dict[TopicPartition, Committed]
) -> list[TopicPartition]:
    if selection.all_topics:
        return sorted(committed)
    places: list[TopicPartition] = []
    for text in selection.topics:
        name, colon, numbers = text.partition(":")
        topic = await cluster.topic(name)
        chosen = sorted(topic.partitions)
        if colon:
            parts = numbers.split(",")
            if not all(part.isdecimal() for part in parts):
                raise Misuse(f"--topic {text!r}: expected topic or topic:0,1,2")
            chosen = [int(part) for part in parts]
        places += [TopicPartition(name, index) for index in chosen]
    await _check_places(cluster, places)
    return places


async def _check_places(cluster: Cluster, places: Iterable[TopicPartition]) -> None:
    for name, partition in places:
        topic = await cluster.topic(name)
        if partition not in topic.partitions:
            raise UnknownPartition(name, partition, len(topic.partitions))


async def _found(cluster: Cluster, places: Iterable[TopicPartition], time: int) -> Offsets:
    found = await find_offsets(cluster, dict.fromkeys(places, time))
    return {place: found[place].offset for place in places}


async def _at_time(cluster: Cluster, places: list[TopicPartition], time: WallTime) -> Offsets:
    found = await _found(cluster, places, time)
    ends = await _found(cluster, places, LATEST)
    # No record is at or after the time: use the end.
    return {place: ends[place] if offset < 0 else offset for place, offset in found.items()}


async def _within(cluster: Cluster, wanted: Offsets) -> Offsets:
    starts = await _found(cluster, wanted, EARLIEST)
    ends = await _found(cluster, wanted, LATEST)
    plan = {place: min(max(o, starts[place]), ends[place]) for place, o in wanted.items()}
    for place, offset in plan.items():
        if offset != wanted[place]:
            note(
                f"ottla: {place} holds offsets {starts[place]} to {ends[place]}:"
                f" {offset} instead of {wanted[place]}"
            )
    return plan


def _show(
    group: str, plan: Offsets, committed: dict[TopicPartition, Committed], *, is_executed: bool
) -> None:
    show_table(
        ["Topic", "Partition>", "Was>", "New offset>" if is_executed else "Would be>"],
        [
            [*place, committed[place].offset if place in committed else "-", offset]
            for place, offset in plan.items()
        ],
    )
    if is_executed:
        say(f"Group {group}: {plural(len(plan), 'offset')} reset.")


def _as_json(
    group: str, plan: Offsets, committed: dict[TopicPartition, Committed], *, is_executed: bool
) -> dict[str, object]:
    return {
        "group": group,
        "executed": is_executed,
        "offsets": [
            {
                "topic": place.topic,
                "partition": place.partition,
                "before": committed[place].offset if place in committed else None,
                "offset": offset,
            }
            for place, offset in plan.items()
        ],
    }
