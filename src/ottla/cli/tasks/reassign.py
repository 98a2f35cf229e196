"""Implementation of `ottla partitions` and of a topic's replication factor."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import typer

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.move_progress import copied_by, place_of, wait_moved
from ottla.cli.tasks.partition_names import (
    Partitions,
    check_known,
    named_partitions,
    partitions_of,
)
from ottla.cli.tasks.replica_plan import CannotPlace, Racks, Replicas, resized, spread
from ottla.cli.views.terminal import note, plural, say, show_json, show_table
from ottla.client.admin import Admin
from ottla.client.brokers import Brokers, Move
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.metadata import UnknownTopic
from ottla.client.reassignments import Reassignments
from ottla.model.types import NodeId, TopicPartition


class Manner(NamedTuple):
    """How a plan is carried out, after it is shown."""

    is_dry: bool = False
    may_ask: bool = False  # On a terminal.
    waits: bool = True
    as_json: bool = False


async def reassign(
    cluster: Cluster, topics: Sequence[str], brokers: Sequence[int], how: Manner
) -> None:
    """Move the replicas of these partitions to these brokers, evenly."""
    current = await named_partitions(cluster, topics)
    plan = _planned(current, await _racks(cluster, brokers))
    await _perform(cluster, current, plan, how)


async def reassign_as(cluster: Cluster, plan: Replicas, how: Manner) -> None:
    """Give each partition the replicas that the plan names."""
    current = await partitions_of(cluster, sorted({place.topic for place in plan}))
    check_known(current, plan)
    await _perform(cluster, current, plan, how)


async def change_replication_factor(cluster: Cluster, topic: str, factor: int) -> None:
    """Give every partition of a topic this many replicas; returns when all of them are in sync."""
    everything = await partitions_of(cluster, None)
    current = {place: item for place, item in everything.items() if place.topic == topic}
    if not current:
        raise UnknownTopic(topic)
    loads = Counter(NodeId(n) for item in everything.values() for n in item.replica_nodes)
    try:
        plan = resized(
            {place: [NodeId(n) for n in item.replica_nodes] for place, item in current.items()},
            {place: [NodeId(n) for n in item.isr_nodes] for place, item in current.items()},
            factor,
            await _racks(cluster, ()),
            loads,
        )
    except CannotPlace as failure:
        raise ClientError(str(failure)) from failure
    await _perform(cluster, current, plan, Manner())


async def list_moves(cluster: Cluster, *, as_json: bool) -> None:
    moves = await Brokers(cluster).moves()
    copied = await copied_by(cluster, moves)
    if as_json:
        show_json(
            [
                {
                    **_move_json(move),
                    "bytes_copied": copied[place_of(move)].there,
                    "bytes": copied[place_of(move)].needed,
                }
                for move in moves
            ]
        )
    elif not moves:
        say("No partition is on the move.")
    else:
        rows = [
            [place, _ids(m.replicas), _ids(m.adding), _ids(m.removing), copied[place]]
            for m in moves
            for place in [place_of(m)]
        ]
        show_table(["Partition", "Replicas", "Adding", "Removing", "Progress"], rows)


async def cancel(cluster: Cluster, topics: Sequence[str], *, as_json: bool) -> None:
    """Stop the moves of these topics, or all: each partition keeps the replicas it had."""
    wanted = await named_partitions(cluster, topics) if topics else None
    moves = [
        move
        for move in await Brokers(cluster).moves()
        if wanted is None or place_of(move) in wanted
    ]
    if moves:
        await Reassignments(cluster).start({place_of(move): None for move in moves})
    if as_json:
        show_json([_move_json(move) for move in moves])
    else:
        say(f"{plural(len(moves), 'move')} cancelled.")


def parse_plan(text: str, name: str) -> Replicas:
    """A plan in the form of Kafka's tool; Misuse says what is wrong with it."""
    try:
        rows = json.loads(text)["partitions"]
        plan: Replicas = {}
        for row in rows:
            place = TopicPartition(str(row["topic"]), int(row["partition"]))
            if place in plan:
                raise Misuse(f"{name}: {place} is named twice")
            if any(directory != "any" for directory in row.get("log_dirs", ())):
                raise Misuse(f"{name}: {place}: log_dirs are not supported, only 'any'")
            plan[place] = [NodeId(int(node)) for node in row["replicas"]]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Misuse(
            f'{name}: expected {{"version":1,"partitions":'
            '[{"topic":"orders","partition":0,"replicas":[1,2]}]}'
        ) from None
    if not plan:
        raise Misuse(f"{name}: names no partition")
    return plan


async def _racks(cluster: Cluster, brokers: Sequence[int]) -> Racks:
    """Racks of the brokers that were named, or of all that run."""
    described = await Admin(cluster).describe_cluster()
    known = {NodeId(b.broker_id): b.rack for b in described.brokers}
    if not brokers:
        return {NodeId(b.broker_id): b.rack for b in described.brokers if not b.is_fenced}
    strange = [node for node in brokers if node not in known]
    if strange:
        raise ClientError(f"there is no broker {strange[0]}: those registered are {_ids(known)}")
    return {NodeId(node): known[NodeId(node)] for node in brokers}


def _planned(current: Partitions, racks: Racks) -> Replicas:
    try:
        return spread(
            {place: [NodeId(n) for n in item.replica_nodes] for place, item in current.items()},
            racks,
        )
    except CannotPlace as failure:
        raise ClientError(str(failure)) from failure


async def _perform(cluster: Cluster, current: Partitions, plan: Replicas, how: Manner) -> None:
    changed = {p: to for p, to in sorted(plan.items()) if current[p].replica_nodes != list(to)}
    if how.as_json:
        show_json(_plan_json(current, changed))
    elif not changed:
        say("Every replica is where it shall be.")
    else:
        rows = [[p, _ids(current[p].replica_nodes), _ids(to)] for p, to in changed.items()]
        show_table(["Partition", "Replicas", "Will be"], rows)
    if how.is_dry:
        note("Nothing was changed: run it again without --dry-run.")
    elif changed:
        await _note_stopped(cluster, changed)
        if how.may_ask and sys.stdin.isatty():
            typer.confirm(f"Move {plural(len(changed), 'partition')}?", abort=True)
        await Reassignments(cluster).start(changed)
        if how.waits:
            await wait_moved(cluster, list(changed))
        if not how.as_json:
            done = "moved" if how.waits else "on the move: 'ottla partitions moves' shows them"
            say(f"{plural(len(changed), 'partition')} {done}.")


async def _note_stopped(cluster: Cluster, plan: Replicas) -> None:
    described = await Admin(cluster).describe_cluster()
    stopped = {b.broker_id for b in described.brokers if b.is_fenced}
    if waited := sorted(stopped & {int(node) for to in plan.values() for node in to}):
        note(
            f"ottla: broker {_ids(waited)} does not run: "
            "moves to it end only after it has started; Ctrl-C leaves them in progress"
        )


def _plan_json(current: Partitions, plan: Mapping[TopicPartition, Sequence[int]]) -> object:
    """In the form of Kafka's tool; `before` is a plan that goes back."""

    def rows(replicas: Mapping[TopicPartition, Sequence[int]]) -> list[object]:
        return [
            {"topic": name, "partition": index, "replicas": list(nodes)}
            for (name, index), nodes in replicas.items()
        ]

    before = {place: current[place].replica_nodes for place in plan}
    return {
        "version": 1,
        "partitions": rows(plan),
        "before": {"version": 1, "partitions": rows(before)},
    }


def _move_json(move: Move) -> dict[str, object]:
    return {
        "topic": move.topic,
        "partition": move.partition,
        "replicas": move.replicas,
        "adding": move.adding,
        "removing": move.removing,
    }


def _ids(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, nodes))
