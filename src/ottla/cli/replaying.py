"""The work of `ottla dlq replay`: dead letters go back to where they came from, once.

What was replayed is what a group has committed for the dead letter topic. It is committed after
every few hundred records that are written: only a crash in between replays some of them twice.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from ottla.cli.dead_letter_view import Offsets, replay_group, unplayed
from ottla.cli.terminal import note, plural, say, show_json, show_table
from ottla.client.cluster import Cluster
from ottla.client.delivery import Written
from ottla.client.errors import ClientError
from ottla.client.groups import Groups, UnknownGroup
from ottla.client.message import Message
from ottla.client.producer import Producer
from ottla.client.reader import Reader
from ottla.consumer.dead_letters import read_dead_letter

POLL_MS = 500
CHUNK_RECORDS = 500


@dataclass(frozen=True, slots=True)
class Replay:
    topic: str
    group: str
    target: str | None  # None: to the topic that each came from.
    messages_max: int | None
    is_executed: bool
    shows_json: bool


async def replay(cluster: Cluster, wanted: Replay) -> None:
    await _check_inactive(cluster, wanted.group)
    begins, ends = await unplayed(cluster, wanted.topic, wanted.group)
    reader = Reader(cluster, {p: begin for p, begin in begins.items() if begin < ends[p]})
    waiting = sum(max(ends[place] - begin, 0) for place, begin in begins.items())
    replaying = Replaying(cluster, wanted, reader, ends, waiting)
    try:
        if wanted.is_executed:
            async with Producer(cluster) as producer:
                await replaying.run(producer)
        else:
            await replaying.run(None)
    except asyncio.CancelledError:
        note("\nottla: interrupted; what was replayed is remembered")
    finally:
        reader.close()
    replaying.tell()


def replay_settings(
    topic: str,
    *,
    group: str | None,
    target: str | None,
    messages_max: int | None,
    is_executed: bool,
    shows_json: bool,
) -> Replay:
    chosen = group or replay_group(topic)
    return Replay(topic, chosen, target, messages_max, is_executed, shows_json)


class Replaying:
    def __init__(
        self, cluster: Cluster, wanted: Replay, reader: Reader, ends: Offsets, waiting: int
    ) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._reader = reader
        self._ends = ends
        self._waiting = waiting
        self._left = wanted.messages_max
        self._counts: Counter[str] = Counter()

    async def run(self, producer: Producer | None) -> None:
        """Chunk by chunk: written, then committed. Without a producer, only counted."""
        self._stop_at_ends()
        while self._reader.positions and self._left != 0:
            messages = self._taken(await self._reader.poll(POLL_MS))
            for first in range(0, len(messages), CHUNK_RECORDS):
                chunk = messages[first : first + CHUNK_RECORDS]
                if producer is not None:
                    await _to_its_end(self._write(producer, chunk))
                self._counts.update(self._target(message) for message in chunk)
                self._show_progress()
            self._stop_at_ends()

    def tell(self) -> None:
        wanted = self._wanted
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
        if wanted.shows_json:
            show_json(
                {
                    "topic": wanted.topic,
                    "group": wanted.group,
                    "executed": wanted.is_executed,
                    "replayed": dict(self._counts),
                }
            )
        elif not self._counts:
            say(f"{wanted.topic} holds no dead letters that were not replayed.")
        else:
            show_table(
                ["To", "Replayed>" if wanted.is_executed else "Would be replayed>"],
                sorted(self._counts.items()),
            )
        if not wanted.is_executed and self._counts:
            note("Nothing was replayed: run it again with --execute.")

    async def _write(self, producer: Producer, messages: list[Message]) -> None:
        done: Offsets = {}
        futures: list[asyncio.Future[Written]] = []
        for message in messages:
            futures.append(await self._send(producer, message))
            done[message.topic_partition] = message.offset + 1
        await producer.flush()
        for future in futures:
            future.result()
        await Groups(self._cluster).commit(self._wanted.group, done)

    async def _send(self, producer: Producer, message: Message) -> "asyncio.Future[Written]":
        letter = read_dead_letter(message)
        target = self._target(message)
        known = await self._cluster.topic(target)
        # Where it was, so that it keeps its place among records without keys too.
        is_home = target == letter.topic and letter.partition in known.partitions
        return await producer.send(
            target,
            message.value,
            message.key,
            headers=letter.headers,
            partition=letter.partition if is_home else None,
            timestamp_ms=message.timestamp_ms,
        )

    def _target(self, message: Message) -> str:
        if self._wanted.target is not None:
            return self._wanted.target
        origin = read_dead_letter(message).topic
        if origin is None:
            raise ClientError(
                f"the record of {message.topic_partition} at offset {message.offset} does not tell"
                " where it came from: name a topic with --to"
            )
        return origin

    def _taken(self, messages: list[Message]) -> list[Message]:
        messages = [item for item in messages if item.offset < self._ends[item.topic_partition]]
        if self._left is not None:
            messages = messages[: self._left]
            self._left -= len(messages)
        return messages

    def _stop_at_ends(self) -> None:
        for place, position in list(self._reader.positions.items()):
            if position >= self._ends[place]:
                self._reader.stop(place)

    def _show_progress(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self._counts.total():,} of {self._waiting:,}\x1b[K")
            sys.stderr.flush()


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Even if interrupted: what is written must be remembered."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _check_inactive(cluster: Cluster, group: str) -> None:
    try:
        described = await Groups(cluster).describe(group)
    except UnknownGroup:
        return
    if described.is_active:
        raise ClientError(
            f"group {group!r} has {plural(len(described.members), 'member')}: its offsets say what"
            " was replayed, so nobody may read for it; name another with --group"
        )
