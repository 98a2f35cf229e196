"""Implementation of `ottla records delete`."""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import typer

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.partition_names import named_partitions
from ottla.cli.tasks.timestamps import parse_moment
from ottla.cli.views.terminal import note, plural, show_json, show_table
from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.model.types import Offset, TopicPartition, WallTime

END = "end"


class Cut(NamedTuple):
    start: Offset
    new_start: Offset
    end: Offset

    @property
    def records(self) -> int:
        """Offsets that go: as many records, unless the partition is compacted."""
        return self.new_start - self.start


Cuts = dict[TopicPartition, Cut]


async def plan_cuts(cluster: Cluster, topics: Sequence[str], before: str) -> Cuts:
    """New start of each partition, within what it holds."""
    places = list(await named_partitions(cluster, topics))
    starts = await find_offsets(cluster, dict.fromkeys(places, EARLIEST))
    ends = await find_offsets(cluster, dict.fromkeys(places, LATEST))
    if before == END:
        wanted = {place: ends[place].offset for place in places}
    elif before.isdecimal():
        wanted = dict.fromkeys(places, int(before))
    else:
        found = await find_offsets(
            cluster, dict.fromkeys(places, _moment(before, cluster.clock.wall()))
        )
        # No record is as young: all of them are older.
        wanted = {p: f.offset if f.offset >= 0 else ends[p].offset for p, f in found.items()}
    return {
        place: Cut(
            starts[place].offset,
            min(max(wanted[place], starts[place].offset), ends[place].offset),
            ends[place].offset,
        )
        for place in places
    }


async def delete_before(
    cluster: Cluster,
    topics: Sequence[str],
    before: str,
    *,
    is_dry: bool,
    may_ask: bool,
    as_json: bool,
) -> None:
    """Show what goes, ask on a terminal, and delete it."""
    cuts = await plan_cuts(cluster, topics, before)
    total = sum(cut.records for cut in cuts.values())
    if as_json:
        show_json([_cut_json(place, cut) for place, cut in cuts.items()])
    else:
        rows = [[p, cut.start, cut.new_start, cut.end, cut.records] for p, cut in cuts.items()]
        show_table(["Partition", "Start>", "New start>", "End>", "Deleted>"], rows)
    if is_dry:
        note(f"Nothing was deleted: without --dry-run {plural(total, 'offset')} would be.")
    elif not total:
        note("Nothing was deleted: all records are younger.")
    else:
        if may_ask and sys.stdin.isatty():
            typer.confirm(f"Delete {plural(total, 'offset')}?", abort=True)
        wanted = {place: cut.new_start for place, cut in cuts.items() if cut.records}
        await Admin(cluster).delete_records(wanted)


def _cut_json(place: TopicPartition, cut: Cut) -> dict[str, object]:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "start": cut.start,
        "new_start": cut.new_start,
        "end": cut.end,
    }


def _moment(text: str, now: WallTime) -> WallTime:
    try:
        return parse_moment(text, now)
    except ValueError:
        raise Misuse(
            f"--before {text!r}: expected an offset, a time like -7d or 2026-08-01T12:00, or 'end'"
        ) from None
