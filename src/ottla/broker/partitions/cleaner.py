"""Compaction: which log is cleaned next, and when. The dirtiest one, one at a time.

The work itself is done by a worker, a little at a time; between two steps the loop may serve, and
the cleaner rests as long as it worked while there are clients to serve. Before a log is cleaned,
it is synced and that is written down, so that a recovery never has to tell what a cleaner took
out from what a power cut did. A damaged log is named once and left alone.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from ottla.broker.context import Node
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.partitions.log_directories import LogDirectories
from ottla.broker.partitions.partitions import Partitions
from ottla.model.errors import Damaged, Refusal
from ottla.storage.cleanable import Cleanable, cleanable
from ottla.storage.compaction import Cleaning, CleaningLimits
from ottla.storage.segment_swap import discard

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.storage.log import Log
    from ottla.storage.segment import Segment

logger = logging.getLogger(__name__)

BACKOFF_MS_MIN = 10


class Cleaner:
    def __init__(
        self, node: Node, partitions: Partitions, directories: LogDirectories, metrics: Metrics
    ) -> None:
        self._node = node
        self._partitions = partitions
        self._directories = directories
        self._metrics = metrics
        self.uncleanable: dict[Log, Damaged] = {}
        self.read_bytes = 0
        self.written_bytes = 0

    def start(self) -> None:
        if self._node.settings.log_cleaner_enable:
            self._node.spawn(self._run())

    async def _run(self) -> None:
        while True:  # It rests first: a start has better things to do.
            backoff_ms = max(self._node.settings.log_cleaner_backoff_ms, BACKOFF_MS_MIN)
            await asyncio.sleep(backoff_ms / 1000)
            while await self.clean_dirtiest():
                pass

    async def clean_dirtiest(self) -> bool:
        """Clean the log with the greatest share of new bytes; False if none needs it, or none can.

        An OSError takes the log's directory offline, as any other would.
        """
        partition = self._dirtiest()
        if partition is None:
            return False
        try:
            return await self._clean(partition)
        except Damaged as damage:
            self._set_uncleanable(partition, damage)
        except FileNotFoundError as error:
            # Retention or a deletion was faster; whatever is left is looked at again later.
            logger.info("%s was not compacted this time: %s", partition.name, error)
        except OSError as error:
            if self._is_current(partition):
                logger.error("cannot compact %s: %s", partition.name, error)
                self._partitions.write_failed(partition, error)
        return False

    def _dirtiest(self) -> "Partition | None":
        partitions = [
            partition
            for partition in self._partitions.all()
            if partition.log.config.is_compacted and len(partition.log.segments) > 1
        ]
        logs = {partition.log for partition in partitions}
        self.uncleanable = {log: why for log, why in self.uncleanable.items() if log in logs}
        found: Partition | None = None
        ratio = -1.0
        for partition in partitions:
            if partition.log in self.uncleanable:
                continue
            part = self._look(partition)
            if (
                part is not None
                and part.is_worth_it(partition.log.config.dirty_ratio_min)
                and part.ratio > ratio
            ):
                found, ratio = partition, part.ratio
        return found

    def _look(self, partition: "Partition") -> Cleanable | None:
        """What there is to clean; None if its segments cannot be read, which costs it alone."""
        try:
            return self._part(partition)
        except Damaged as damage:
            self._set_uncleanable(partition, damage)
        except OSError as error:
            self._partitions.read_failed(partition, error)
        return None

    def _set_uncleanable(self, partition: "Partition", damage: Damaged) -> None:
        logger.error("%s is not compacted any more: %s", partition.name, damage)
        self.uncleanable[partition.log] = damage

    def _part(self, partition: "Partition") -> Cleanable:
        log = partition.log
        cleaned_to = self._directories.of(log).checkpoints.cleaned.get(partition.name)
        now = self._node.env.clock.wall()
        return cleanable(log, cleaned_to, partition.last_stable_offset, now)

    async def _clean(self, partition: "Partition") -> bool:
        log = partition.log
        await self._make_durable(partition)
        if not self._is_current(partition):
            return True  # There may be another one to clean.
        part = self._part(partition)
        if part.end > log.recovery_point or not part.dirty_bytes:
            return False  # It was cut meanwhile, or a sync failed.
        settings = self._node.settings
        limits = CleaningLimits(
            settings.log_cleaner_dedupe_buffer_size,
            settings.log_cleaner_io_buffer_load_factor,
            settings.ottla_record_decompressed_bytes_max,
        )
        cleaning = Cleaning(log, part, self._node.env.clock.wall(), limits)
        await self._go_through(cleaning.gather())
        if cleaning.map.end_offset == part.first_dirty:
            raise Damaged(
                log.directory,
                part.first_dirty,
                "one batch has more keys than log.cleaner.dedupe.buffer.size has room for",
            )
        for group in cleaning.groups():
            if not await self._clean_group(partition, cleaning, group):
                return False
        directory = self._directories.of(log)
        directory.checkpoints.cleaned[partition.name] = cleaning.map.end_offset
        self._partitions.checkpoints.soon(directory)
        self.read_bytes += cleaning.read_bytes
        self.written_bytes += cleaning.written_bytes
        logger.info(
            "compacted %s up to offset %d: %d of %d bytes are left",
            partition.name,
            cleaning.map.end_offset,
            cleaning.written_bytes,
            part.clean_bytes + part.dirty_bytes,
        )
        return True

    async def _make_durable(self, partition: "Partition") -> None:
        if partition.log.is_unsynced:
            await self._partitions.sync.all([partition])
        if not self._is_current(partition):
            return
        directory = self._directories.of(partition.log)
        written = directory.checkpoints.recovery_points
        if written.get(partition.name, 0) < partition.log.segments[-1].base_offset:
            with suppress(Refusal):  # Then it is not cleaned below.
                await self._partitions.checkpoints.write(directory)

    async def _clean_group(
        self, partition: "Partition", cleaning: Cleaning, group: "list[Segment]"
    ) -> bool:
        """False if the log went on in another way, or there is no room for a copy."""
        log, env = partition.log, self._node.env
        if env.disk.free_bytes(log.directory) < sum(segment.size for segment in group):
            logger.warning("no room to compact %s", partition.name)
            return False
        cleaned = await env.workers.run(cleaning.begin, group)
        try:
            await self._go_through(cleaning.copy(group, cleaned))
        except (OSError, Damaged):
            await env.workers.run(discard, env.disk, cleaned)
            raise
        if not self._is_current(partition):
            await env.workers.run(discard, env.disk, cleaned)
            return False
        try:
            return log.replace_segments(group, cleaned, env.clock.wall())
        except OSError as error:
            # Some names are old and some new: only the next start can tell, even if it was only
            # for lack of room.
            if isinstance(error, FileNotFoundError):
                self._partitions.write_failed(partition, error)
            else:
                self._directories.take_offline(log, error)
            return False

    async def _go_through(self, steps: Iterator[int]) -> None:
        """All steps, each in a worker, with rests between that others can use."""
        while True:
            begun, traffic = self._node.now, self._traffic()
            done_bytes = await self._node.env.workers.run(_next, steps)
            if done_bytes is None:
                return
            rate = max(1.0, self._node.settings.log_cleaner_io_max_bytes_per_second)
            rest_seconds = done_bytes / rate
            if self._traffic() != traffic:
                rest_seconds = max(rest_seconds, (self._node.now - begun) / 1000)
            if rest_seconds > 0.001:
                await asyncio.sleep(rest_seconds)

    def _traffic(self) -> int:
        metrics = self._metrics
        return metrics.bytes_in + metrics.bytes_out

    def _is_current(self, partition: "Partition") -> bool:
        """Whether the log is still the partition's, in a directory that can be used."""
        directory = self._directories.of(partition.log)
        return directory.failure is None and directory.logs.get(partition.name) is partition.log


def _next(steps: Iterator[int]) -> int | None:
    return next(steps, None)
