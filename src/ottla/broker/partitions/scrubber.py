"""Looks for damage that nobody has met yet: reads all sealed segments once a day, bit by bit.

A log with damage is given up and fetched anew where others are in sync (`Partitions.damaged`). The
only copy stays in service, so that all that is readable is read: it is named, and counted.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.broker.context import BrokerContext
from ottla.broker.partitions.partitions import Partitions
from ottla.model.errors import Damaged
from ottla.storage.segment_scrub import check_batches

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.storage.segment import Segment

logger = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 24 * 3600.0
STEP_BYTES: Final = 1 << 20
REST_SECONDS: Final = 0.1  # After each step: no more than 10 MB a second.


class Scrubber:
    def __init__(self, context: BrokerContext, partitions: Partitions) -> None:
        self._context = context
        self._partitions = partitions

    def start(self) -> None:
        self._context.spawn(self._run())

    async def _run(self) -> None:
        await asyncio.sleep(self._context.settings.log_initial_task_delay_ms / 1000)
        while True:
            await self.scrub()
            await asyncio.sleep(INTERVAL_SECONDS)

    async def scrub(self) -> None:
        """Read everything once."""
        for partition in self._partitions.all():
            for segment in partition.log.segments[:-1]:
                if not await self._is_whole(partition, segment):
                    break

    async def _is_whole(self, partition: "Partition", segment: "Segment") -> bool:
        """Whether to go on with this log: it is there, and no damage was found."""
        position, end = 0, segment.size
        offsets = range(segment.base_offset, segment.next_offset)
        while position < end:
            if not self._is_current(partition, segment, end):
                return False
            try:
                position = await self._context.env.workers.run(
                    check_batches, segment.open_file(), position, end, offsets, STEP_BYTES
                )
            except FileNotFoundError:
                return False  # Retention or a deletion was faster.
            except OSError as error:
                if self._is_current(partition, segment, end):
                    self._partitions.write_failed(partition, error)
                return False
            except Damaged as damage:
                if self._is_current(partition, segment, end):
                    self._found(partition, damage)
                return False
            await asyncio.sleep(REST_SECONDS)
        return True

    def _is_current(self, partition: "Partition", segment: "Segment", end: int) -> bool:
        """Whether the segment is still what it was: sealed, and part of a log in use."""
        hosted = self._partitions.all()
        return (
            any(partition is each for each in hosted)
            and segment in partition.log.segments[:-1]
            and segment.size == end
        )

    def _found(self, partition: "Partition", damage: Damaged) -> None:
        topic = self._context.image.topics_by_id.get(partition.topic_id)
        if topic is None:
            return
        state = topic.partitions[partition.name.partition]
        if state.has_others_in_sync(self._context.node_id):
            self._partitions.damaged(partition, damage)
        else:
            self._partitions.damages += 1
            logger.error("%s has no other copy: %s", partition.name, damage)
