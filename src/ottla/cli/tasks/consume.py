"""Implementation of `ottla consume`: start, end, and the final count."""

import asyncio
import sys
from dataclasses import dataclass

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.timestamps import parse_moment
from ottla.cli.views.record_output import RecordOutput
from ottla.cli.views.terminal import note, plural
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.message import Message
from ottla.client.metadata import UnknownPartition
from ottla.client.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    find_offsets,
)
from ottla.client.reader import Reader, ReaderSettings
from ottla.model.types import Millis, Offset, TopicPartition

POLL_MS = 1000
Offsets = dict[TopicPartition, Offset]


@dataclass(frozen=True, slots=True)
class Start:
    """Start position: a time (or EARLIEST, LATEST), an offset, or a distance from the end."""

    time: str | None = None
    special: int | None = None
    offset: Offset | None = None
    back: int | None = None

    @classmethod
    def choose(
        cls, *, from_beginning: bool, offset: str | None, from_time: str | None, to_end: bool
    ) -> "Start":
        if from_beginning + (offset is not None) + (from_time is not None) > 1:
            raise Misuse("give one of --from-beginning, --offset and --from-time")
        if from_time is not None:
            return cls(time=from_time)
        if offset is not None:
            return cls._parse_offset(offset)
        return cls(special=EARLIEST if from_beginning or to_end else LATEST)

    @classmethod
    def _parse_offset(cls, text: str) -> "Start":
        named = {"earliest": EARLIEST, "beginning": EARLIEST, "latest": LATEST, "end": LATEST}
        if text in named:
            return cls(special=named[text])
        if not text.removeprefix("-").isdecimal():
            raise Misuse(f"--offset {text!r}: expected a number, -N, earliest or latest")
        return cls(back=-int(text)) if text.startswith("-") else cls(offset=int(text))


async def read_all(
    cluster: Cluster,
    topic: str,
    partitions: list[int],
    start: Start,
    printing: RecordOutput,
    *,
    to_end: bool,
    messages_max: int | None,
    is_committed_only: bool,
) -> None:
    known = await cluster.topic(topic)
    for partition in partitions:
        if partition not in known.partitions:
            raise UnknownPartition(topic, partition, len(known.partitions))
    chosen = [TopicPartition(topic, index) for index in partitions or sorted(known.partitions)]
    isolation = READ_COMMITTED if is_committed_only else READ_UNCOMMITTED
    begins = await _offsets_at(cluster, chosen, EARLIEST, isolation)
    ends = await _offsets_at(cluster, chosen, LATEST, isolation)
    positions = await _positions(cluster, start, begins, ends)
    reader = Reader(cluster, positions, ReaderSettings(isolation=isolation))
    copying = RecordCopy(reader, printing, ends if to_end else None, messages_max)
    try:
        await copying.run()
    except asyncio.CancelledError:
        pass  # Ctrl-C is the usual end, not an error.
    except BrokenPipeError:
        raise
    except BaseException:
        copying.tell()
        raise
    copying.tell()


class RecordCopy:
    """Copies records from a reader to standard output."""

    def __init__(
        self, reader: Reader, printing: RecordOutput, ends: Offsets | None, messages_max: int | None
    ) -> None:
        self._reader = reader
        self._printing = printing
        self._ends = ends
        self._left = messages_max
        self._count = 0

    @property
    def is_over(self) -> bool:
        """Whether the end or the limit is reached."""
        return self._left == 0 or (self._ends is not None and not self._reader.positions)

    async def run(self) -> None:
        self._stop_at_end()
        while self._reader.positions and self._left != 0:
            await self.step(POLL_MS)

    def begin(self, reader: Reader) -> None:
        """Continue with another reader."""
        self._reader = reader
        self._stop_at_end()

    async def step(self, wait_ms: Millis) -> list[Message]:
        """Print available records; returns their offsets."""
        messages = self._write(await self._reader.poll(wait_ms))
        self._stop_at_end()
        return messages

    def tell(self) -> None:
        note(f"{plural(self._count, 'record')} read.")

    def _write(self, messages: list[Message]) -> list[Message]:
        ends = self._ends
        if ends is not None:  # More records may have come since the end offsets were read.
            messages = [item for item in messages if item.offset < ends[item.topic_partition]]
        if self._left is not None:
            messages = messages[: self._left]
            self._left -= len(messages)
        if messages:
            sys.stdout.buffer.write(b"".join(map(self._printing.render, messages)))
            sys.stdout.buffer.flush()
            self._count += len(messages)
        return messages

    def _stop_at_end(self) -> None:
        if self._ends is None:
            return
        for topic_partition, position in list(self._reader.positions.items()):
            if position >= self._ends[topic_partition]:
                self._reader.stop(topic_partition)


async def _offsets_at(
    cluster: Cluster, partitions: list[TopicPartition], time: int, isolation: int
) -> Offsets:
    found = await find_offsets(cluster, dict.fromkeys(partitions, time), isolation=isolation)
    return {topic_partition: item.offset for topic_partition, item in found.items()}


async def _positions(cluster: Cluster, start: Start, begins: Offsets, ends: Offsets) -> Offsets:
    if start.offset is not None:
        return _within(start.offset, begins, ends)
    if start.back is not None:
        return {place: max(begins[place], end - start.back) for place, end in ends.items()}
    if start.time is not None:
        time_ms = parse_moment(start.time, cluster.clock.wall())
        found = await find_offsets(cluster, dict.fromkeys(ends, time_ms))
        # No record is at or after the time: start at the end.
        return {
            place: item.offset if item.offset >= 0 else ends[place] for place, item in found.items()
        }
    return begins if start.special == EARLIEST else ends


def _within(offset: Offset, begins: Offsets, ends: Offsets) -> Offsets:
    """Limit an offset to what each partition holds."""
    if not any(begins[place] <= offset <= end for place, end in ends.items()):
        place, end = max(ends.items(), key=lambda item: item[1])
        held = f"offsets {begins[place]} to {end - 1}" if begins[place] < end else "no records"
        raise ClientError(f"offset {offset} is out of range: {place} holds {held}, next is {end}")
    return {place: min(max(offset, begins[place]), end) for place, end in ends.items()}
