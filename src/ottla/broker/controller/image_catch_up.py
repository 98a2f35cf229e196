"""Waits until this node's committed image has everything that the active controller has committed.

A broker that passed a change on waits so before it answers its client: whoever reads from the same
broker next finds the change. The response of the controller does not carry the offset of the
decision, so the controller is asked for its high watermark after it has answered: DescribeQuorum,
which controllers of Apache Kafka serve as well.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from ottla.broker.controller.channel import ControllerChannel
from ottla.broker.controller.metadata_commits import MetadataCommits
from ottla.metadata.image.cluster import METADATA_TOPIC
from ottla.model.errors import Refusal
from ottla.model.types import Offset
from ottla.protocol.messages import describe_quorum

logger = logging.getLogger(__name__)

WAIT_SECONDS_MAX: Final = 2.0  # Then the change is answered anyway: it is decided.


class ImageCatchUp:
    def __init__(self, channel: ControllerChannel, commits: MetadataCommits) -> None:
        self._channel = channel
        self._commits = commits
        self._grew = asyncio.Event()
        commits.subscribe(lambda _delta: self._grew.set())

    async def wait(self) -> None:
        """Return once the image has what was committed before this call, or after 2 seconds."""
        with suppress(TimeoutError, Refusal):
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                await self._wait_reached(await self._committed_end())
                return
        logger.info("a change was answered before this node's image has it")

    async def _committed_end(self) -> Offset:
        partition = describe_quorum.RequestPartitionData(0)
        topic = describe_quorum.RequestTopicData(METADATA_TOPIC, [partition])
        response: describe_quorum.Response | None = await self._channel.ask(
            describe_quorum.Request([topic]), lambda: self._commits.active is not None
        )
        if response is None:  # This node has become the active controller: its log has the change.
            return self._commits.log_end_offset
        return response.topics[0].partitions[0].high_watermark

    async def _wait_reached(self, end: Offset) -> None:
        while self._commits.committed_image.image.offset + 1 < end:
            self._grew.clear()
            await self._grew.wait()
