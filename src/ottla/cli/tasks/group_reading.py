"""The work of `ottla consume --group`: read as a member of a group, and commit what was written."""

import asyncio

from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.consuming import Copying, Offsets, Start
from ottla.cli.views.printing import Printing
from ottla.client.cluster import Cluster
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


def check_options(start: Start, partitions: list[int]) -> None:
    """A group says by itself what is read, and from where on."""
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
    printing: Printing,
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
    copying = Copying(Reader(cluster, {}), printing, ends, messages_max)
    member = Membership(cluster, group, [topic])
    reading = GroupReading(cluster, member, copying, start.special or EARLIEST, isolation)
    try:
        await reading.run()
    except asyncio.CancelledError:
        pass  # Ctrl-C is how one ends it: that is no failure.
    finally:
        await reading.close()
    copying.tell()


class GroupReading:
    """Generation after generation of the group, until there is enough."""

    def __init__(
        self,
        cluster: Cluster,
        member: Membership,
        copying: Copying,
        reset_to: int,
        isolation: int,
    ) -> None:
        self._cluster = cluster
        self._member = member
        self._copying = copying
        self._reset_to = reset_to
        self._settings = ReaderSettings(isolation=isolation)
        self._written: Offsets = {}  # Not committed yet.
        self._due_at = 0

    async def run(self) -> None:
        is_over = False
        while not is_over:
            await self._member.join()
            self._written = {}  # Of partitions that another may own by now.
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
        await self._member.leave()

    async def _copy(self) -> None:
        if not self._member.partitions:
            await asyncio.sleep(POLL_MS / 1000)  # Others have them all: wait until one leaves.
            return
        for message in await self._copying.step(POLL_MS):
            self._written[message.topic_partition] = message.offset + 1

    async def _stays(self) -> bool:
        """Now and then commit and say that we are alive; False if the group changes."""
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
        """Where the group has stopped; where it has not begun, at the beginning or the end."""
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
