"""Implementation of `ottla consume --group`: read as a member of a group, commit printed
records.
"""

import asyncio

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.consume import Offsets, RecordCopy, Start
from ottla.cli.views.record_output import RecordOutput
from ottla.cli.views.terminal import note
from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError
from ottla.client.groups import Groups
from ottla.client.membership import HEARTBEAT_MS, Membership
from ottla.client.offsets import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    find_offsets,
)
from ottla.client.reader import Reader, ReaderSettings
from ottla.model.types import TopicPartition

POLL_MS = 500
FAREWELL_SECONDS_MAX = 1.0  # For the last commit and the leave, after Ctrl-C or a failure.


def check_options(start: Start, partitions: list[int]) -> None:
    """The group determines partitions and start offsets."""
    if partitions:
        raise Misuse("--partition and --group exclude each other: the group shares them out")
    if start.special is None:
        raise Misuse(
            "--group goes on where the group has stopped: see 'ottla groups reset-offsets --help'"
        )


async def read_as_member(
    cluster: Cluster,
    topic: str,
    group: str,
    start: Start,
    printing: RecordOutput,
    *,
    to_end: bool,
    messages_max: int | None,
    is_committed_only: bool,
) -> None:
    known = await cluster.topic(topic)
    isolation = READ_COMMITTED if is_committed_only else READ_UNCOMMITTED
    places = [TopicPartition(topic, index) for index in sorted(known.partitions)]
    ends = None
    if to_end:
        found = await find_offsets(cluster, dict.fromkeys(places, LATEST), isolation=isolation)
        ends = {place: item.offset for place, item in found.items()}
    copying = RecordCopy(Reader(cluster, {}), printing, ends, messages_max)
    member = Membership(cluster, group, [topic])
    reading = GroupReader(cluster, member, copying, start.special or EARLIEST, isolation)
    try:
        await reading.run()
    except asyncio.CancelledError:
        await reading.close_soon()  # Ctrl-C is the usual end, not an error.
    except (ClientError, OSError):
        await reading.close_soon()
        raise
    else:
        await reading.close()
    copying.tell()


class GroupReader:
    """Reads through the generations of the group until a limit is reached."""

    def __init__(
        self,
        cluster: Cluster,
        member: Membership,
        copying: RecordCopy,
        reset_to: int,
        isolation: int,
    ) -> None:
        self._cluster = cluster
        self._member = member
        self._copying = copying
        self._reset_to = reset_to
        self._settings = ReaderSettings(isolation=isolation)
        self._written: Offsets = {}  # Printed and not committed yet.
        self._due_at = 0

    async def run(self) -> None:
        is_over = False
        while not is_over:
            await self._member.join()
            self._written = {}  # Of partitions that another member may own by now.
            reader = Reader(self._cluster, await self._positions(), self._settings)
            self._copying.begin(reader)
            try:
                while not (is_over := self._copying.is_over) and await self._stays():
                    await self._copy()
            finally:
                reader.close()

    async def close(self) -> None:
        if self._written:
            await self._member.commit(self._written)
            self._written = {}
        await self._member.leave()

    async def close_soon(self) -> None:
        """Close within `FAREWELL_SECONDS_MAX`; note how many printed records stay uncommitted."""
        try:
            async with asyncio.timeout(FAREWELL_SECONDS_MAX):
                await self.close()
        except (TimeoutError, ClientError):
            if self._written:
                places = ", ".join(f"{place} {offset}" for place, offset in self._written.items())
                note(f"The group's coordinator does not answer: not committed: {places}")

    async def _copy(self) -> None:
        if not self._member.partitions:
            # Other members own all partitions: wait for a rebalance.
            await asyncio.sleep(POLL_MS / 1000)
            return
        for message in await self._copying.step(POLL_MS):
            self._written[message.topic_partition] = message.offset + 1

    async def _stays(self) -> bool:
        """Commit and send heartbeats periodically; False when the group rebalances."""
        now = self._cluster.clock.monotonic()
        if now < self._due_at:
            return True
        self._due_at = now + HEARTBEAT_MS
        if self._written:
            if not await self._member.commit(self._written):
                return False
            self._written = {}
        return await self._member.heartbeat()

    async def _positions(self) -> Offsets:
        """The committed offsets; without one, the start or the end of the partition."""
        places = self._member.partitions
        committed = await Groups(self._cluster).offsets(self._member.group)
        fresh = [place for place in places if place not in committed]
        found = await find_offsets(self._cluster, dict.fromkeys(fresh, self._reset_to))
        starts = await find_offsets(self._cluster, dict.fromkeys(places, EARLIEST))
        return {
            place: max(committed[place].offset, starts[place].offset)
            if place in committed
            else found[place].offset
            for place in places
        }
