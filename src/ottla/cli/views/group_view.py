"""Output of `ottla groups list` and `describe`: states, members, lag in records and in time."""

from collections.abc import Iterable, Sequence

from ottla.cli.views.terminal import plural, say, show_json, show_table
from ottla.client.cluster import Cluster
from ottla.client.groups import Committed, Described, Groups, Member
from ottla.client.lag import Lag, find_lags
from ottla.model.types import Millis, TopicPartition

Row = dict[str, object]
UNKNOWN = "-"


async def list_groups(
    cluster: Cluster, states: Sequence[str], types: Sequence[str], *, as_json: bool
) -> None:
    found = await Groups(cluster).listed(states, types)
    if as_json:
        show_json([item._asdict() for item in found])
    elif not found:
        say("There are no such groups." if states or types else "There are no groups yet.")
    else:
        show_table(
            ["Group", "Type", "State", "Protocol", "Coordinator>"],
            [
                [g.group, g.type or UNKNOWN, g.state or UNKNOWN, g.protocol_type, g.coordinator]
                for g in found
            ],
        )


async def describe_groups(cluster: Cluster, names: Sequence[str], *, as_json: bool) -> None:
    groups = Groups(cluster)
    answers: list[Row] = []
    for number, name in enumerate(names):
        group = await groups.describe(name)
        committed = await groups.offsets(name)
        answer = await _described(cluster, group, committed)
        if as_json:
            answers.append(answer)
            continue
        if number:
            say("")
        _show(group, answer)
    if as_json:
        show_json(answers)


async def _described(
    cluster: Cluster, group: Described, committed: dict[TopicPartition, Committed]
) -> Row:
    owners = {place: member for member in group.members for place in member.partitions}
    places = sorted({*owners, *committed})
    offsets = {place: committed[place].offset if place in committed else None for place in places}
    lags = await find_lags(cluster, offsets)
    rows = [_row(place, committed.get(place), lags[place], owners.get(place)) for place in places]
    records, ms = total(lags.values())
    return {
        "group": group.group,
        "type": group.type,
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "lag_records": records,
        "lag_seconds": _seconds(ms),
        "members": [_member(member) for member in group.members],
        "partitions": rows,
    }


def total(lags: Iterable[Lag]) -> tuple[int | None, Millis | None]:
    """Sum of records and maximum of times; None if unknown."""
    known = list(lags)
    records = [lag.records for lag in known if lag.records is not None]
    times = [lag.ms for lag in known if lag.ms is not None]
    return sum(records) if records else None, max(times, default=None)


def _row(place: TopicPartition, committed: Committed | None, lag: Lag, owner: Member | None) -> Row:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "committed_offset": committed.offset if committed else None,
        "start_offset": lag.start_offset,
        "end_offset": lag.end_offset,
        "lag_records": lag.records,
        "lag_seconds": _seconds(lag.ms),
        "member_id": owner.member_id if owner else None,
        "client_id": owner.client_id if owner else None,
        "metadata": committed.metadata if committed else None,
    }


def _member(member: Member) -> Row:
    topics: dict[str, list[int]] = {}
    for topic, partition in member.partitions:
        topics.setdefault(topic, []).append(partition)
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "assignment": topics,
    }


def _show(group: Described, answer: Row) -> None:
    assignor = f", {group.assignor}" if group.assignor else ""
    say(
        f"Group {group.group}: {group.state}, {group.type}{assignor},"
        f" {plural(len(group.members), 'member')}, coordinator {group.coordinator}"
    )
    records = answer["lag_records"]
    if isinstance(records, int):
        say(f"Behind by {plural(records, 'record')}, {duration_text(answer['lag_seconds'])}")
    rows = answer["partitions"]
    assert isinstance(rows, list), "made here"
    if rows:
        say("")
        show_table(
            ["Topic", "Partition>", "Committed>", "End>", "Lag>", "Behind>", "Client", "Member"],
            [
                [
                    row["topic"],
                    row["partition"],
                    _or_unknown(row["committed_offset"]),
                    _or_unknown(row["end_offset"]),
                    _or_unknown(row["lag_records"]),
                    duration_text(row["lag_seconds"]),
                    _or_unknown(row["client_id"]),
                    _or_unknown(row["member_id"]),
                ]
                for row in rows
            ],
        )
    if group.members:
        say("")
        show_table(
            ["Member", "Client", "Host", "Instance", "Partitions"],
            [
                [m.member_id, m.client_id, m.host, m.instance_id or UNKNOWN, _partitions(m)]
                for m in group.members
            ],
        )


def duration_text(seconds: object) -> str:
    """A duration in about two digits."""
    if not isinstance(seconds, int | float):
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.1f} s" if 0 < seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _partitions(member: Member) -> str:
    return " ".join(map(str, member.partitions)) or "none"


def _seconds(ms: Millis | None) -> float | None:
    return None if ms is None else ms / 1000


def _or_unknown(value: object) -> object:
    return UNKNOWN if value is None else value
