"""Implementation of `ottla dlq replay`: dead letters go back to their original topics, once.

A group's committed offsets on the dead letter topic mark replayed letters; they are committed after
every few hundred records of a partition. Before these are sent, their producer id is noted: after a
crash they are sent again with it, and the brokers drop duplicates. They are written twice only if a
broker has forgotten the id (`producer.id.expiration.ms`, a day).
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from ottla.cli.tasks.replay_notes import Begun, read_note
from ottla.cli.views.dead_letter_view import Offsets, replay_group, unplayed
from ottla.cli.views.terminal import note, plural, say, show_json, show_table
from ottla.client.cluster import Cluster
from ottla.client.delivery import ProducerSettings
from ottla.client.errors import ClientError
from ottla.client.groups import Groups, UnknownGroup
from ottla.client.message import Message
from ottla.client.metadata import UnknownTopic
from ottla.client.producer import Producer, new_identity
from ottla.client.reader import Reader
from ottla.consumer.dead_letters import read_dead_letter
from ottla.model.types import Offset, TopicPartition

POLL_MS = 500
CHUNK_RECORDS = 500
CHUNK_BYTES = 256 * 1024
# A chunk is one batch in each partition on every attempt: nothing is sent before the flush.
WHOLE_BATCHES = ProducerSettings(linger_ms=3_600_000, batch_bytes_max=1 << 30)


@dataclass(frozen=True, slots=True)
class Replay:
    topic: str
    group: str
    target: str | None  # None: to each letter's original topic.
    messages_max: int | None
    is_executed: bool
    shows_json: bool


async def replay(cluster: Cluster, wanted: Replay) -> None:
    await _check_inactive(cluster, wanted.group)
    begins, ends = await unplayed(cluster, wanted.topic, wanted.group)
    waiting = sum(max(ends[place] - begin, 0) for place, begin in begins.items())
    replaying = Replayer(cluster, wanted, ends, waiting)
    try:
        if wanted.is_executed:
            begins |= await replaying.finish(begins)
        await replaying.run({p: begin for p, begin in begins.items() if begin < ends[p]})
    except asyncio.CancelledError:
        note("\nottla: interrupted; what was replayed is remembered")
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


class Replayer:
    def __init__(self, cluster: Cluster, wanted: Replay, ends: Offsets, waiting: int) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._ends = ends
        self._waiting = waiting
        self._left = wanted.messages_max
        self._counts: Counter[str] = Counter()

    async def finish(self, begins: Offsets) -> Offsets:
        """Repeat the chunks that an earlier run started; returns the resulting positions."""
        committed = await Groups(self._cluster).offsets(self._wanted.group)
        done: Offsets = {}
        for place, begin in begins.items():
            known = committed.get(place)
            begun = read_note(known.metadata, begin) if known and known.offset == begin else None
            if begun is None:
                continue
            chunk = await self._read(place, begin, begun.until)
            try:
                await _to_its_end(self._write(chunk, begun))
            except UnknownTopic:
                continue  # It was deleted, with all that was replayed to it.
            self._count(chunk, begun.target)
            done[place] = begun.until
        return done

    async def _read(self, place: TopicPartition, begin: Offset, until: Offset) -> list[Message]:
        reader = Reader(self._cluster, {place: begin})
        found: list[Message] = []
        try:
            while reader.positions[place] < until:
                found += await reader.poll(POLL_MS)
        finally:
            reader.close()
        return [message for message in found if message.offset < until]

    async def run(self, begins: Offsets) -> None:
        """Chunk by chunk: noted, written, then committed. Without `--execute`, only counted."""
        reader = Reader(self._cluster, begins)
        try:
            while reader.positions and self._left != 0:
                for chunk in _chunks(self._taken(await reader.poll(POLL_MS))):
                    if self._wanted.is_executed:
                        await _to_its_end(self._begin(chunk))
                    self._count(chunk, self._wanted.target)
                for place, position in list(reader.positions.items()):
                    if position >= self._ends[place]:
                        reader.stop(place)
        finally:
            reader.close()

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

    async def _begin(self, chunk: list[Message]) -> None:
        for target in {_target(message, self._wanted.target) for message in chunk}:
            await self._cluster.topic(target)  # Fail before the note is written.
        place, first = chunk[0].topic_partition, chunk[0].offset
        identity = await new_identity(self._cluster)
        begun = Begun(chunk[-1].offset + 1, identity, self._wanted.target)
        groups = Groups(self._cluster)
        await groups.commit(self._wanted.group, {place: first}, metadata=begun.encode())
        await self._write(chunk, begun)

    async def _write(self, chunk: list[Message], begun: Begun) -> None:
        async with Producer(self._cluster, WHOLE_BATCHES, lambda _: begun.numbering) as producer:
            for message in chunk:
                await self._send(producer, message, begun.target)
        if chunk:
            done = {chunk[0].topic_partition: begun.until}
            await Groups(self._cluster).commit(self._wanted.group, done)

    async def _send(self, producer: Producer, message: Message, named: str | None) -> None:
        letter = read_dead_letter(message)
        target = _target(message, named)
        known = await self._cluster.topic(target)
        partition: int | None = None
        if target == letter.topic and letter.partition in known.partitions:
            partition = letter.partition  # Keeps its partition, even without a key.
        elif message.key is None:
            partition = message.offset % len(known.partitions)  # The same in every attempt.
        await producer.send(
            target,
            message.value,
            message.key,
            headers=letter.headers,
            partition=partition,
            timestamp_ms=message.timestamp_ms,
        )

    def _count(self, chunk: list[Message], named: str | None) -> None:
        self._counts.update(_target(message, named) for message in chunk)
        self._show_progress()

    def _taken(self, messages: list[Message]) -> list[Message]:
        messages = [item for item in messages if item.offset < self._ends[item.topic_partition]]
        if self._left is not None:
            messages = messages[: self._left]
            self._left -= len(messages)
        return messages

    def _show_progress(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{self._counts.total():,} of {self._waiting:,}\x1b[K")
            sys.stderr.flush()


def _chunks(messages: list[Message]) -> Iterator[list[Message]]:
    """Chunks of one partition, each small enough for one batch in its target."""
    chunk: list[Message] = []
    size = 0
    for message in sorted(messages, key=lambda item: (item.partition, item.offset)):
        more = len(message.value or b"") + len(message.key or b"")
        is_other = bool(chunk) and chunk[0].partition != message.partition
        if is_other or len(chunk) == CHUNK_RECORDS or (chunk and size + more > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(message)
        size += more
    if chunk:
        yield chunk


def _target(message: Message, named: str | None) -> str:
    if named is not None:
        return named
    origin = read_dead_letter(message).topic
    if origin is None:
        raise ClientError(
            f"the record of {message.topic_partition} at offset {message.offset} does not tell"
            " where it came from: name a topic with --to"
        )
    return origin


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end even if interrupted: written records must be committed."""
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
