"""Reads partitions through an incremental fetch session (KIP-227), as most consumers do.

The first fetch names every partition; later ones only those whose position has changed, and the
broker remembers the others. What breaks the session, or the connection, starts a new one.
"""

import asyncio
from collections.abc import Mapping

from ottla.client.cluster import Cluster
from ottla.client.errors import ClientError, check
from ottla.client.message import Message
from ottla.client.reader import ReaderSettings
from ottla.client.unpacking import unpack
from ottla.model.errors import ErrorCode
from ottla.model.types import Millis, NodeId, Offset, TopicPartition, Uuid
from ottla.protocol.messages import fetch as wire

FULL_AND_NEW = 0
BROKEN = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
RETRY_SECONDS = 0.05


class SessionReader:
    """As `ottla.client.reader.Reader`, for a cluster of one broker."""

    def __init__(
        self,
        cluster: Cluster,
        offsets: Mapping[TopicPartition, Offset],
        settings: ReaderSettings,
    ) -> None:
        self.positions = dict(offsets)
        self.settings = settings
        self._cluster = cluster
        self._session_id = 0
        self._epoch = FULL_AND_NEW
        self._told: dict[TopicPartition, Offset] = {}  # What the broker knows of our positions.
        self._names: dict[Uuid, str] = {}

    def close(self) -> None:
        self._cluster.close_lane(self)

    async def poll(self, wait_ms: Millis) -> list[Message]:
        """The messages that came; a failure that may pass is waited out."""
        clock = self._cluster.clock
        deadline = clock.monotonic() + wait_ms
        give_up = clock.monotonic() + self._cluster.settings.deadline_ms
        while True:
            try:
                messages = await self._fetch()
            except ClientError as failure:
                self._begin_anew()
                if not failure.is_retriable or clock.monotonic() > give_up:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if messages or clock.monotonic() >= deadline:
                return messages

    def _begin_anew(self) -> None:
        self._session_id, self._epoch = 0, FULL_AND_NEW
        self._told.clear()

    async def _fetch(self) -> list[Message]:
        node_id = NodeId(-1)
        for place in self.positions:
            node_id = await self._cluster.leader_id(place)
        connection = await self._cluster.broker(node_id, lane=self)
        asked = dict(self.positions)
        answer = await connection.ask(
            await self._request(asked),
            wire.Response,
            timeout_ms=self.settings.wait_ms + self._cluster.settings.request_ms_max,
        )
        if answer.error_code in BROKEN:
            self._begin_anew()
            return []
        check(answer.error_code, about=str(connection.address))
        self._session_id = answer.session_id
        # Without a session of its own it names everything, every time.
        self._epoch = self._epoch + 1 if answer.session_id else FULL_AND_NEW
        self._told = asked if answer.session_id else {}
        messages: list[Message] = []
        failures: list[ClientError] = []
        for topic in answer.responses:
            for part in topic.partitions:
                place = TopicPartition(self._names[topic.topic_id], part.partition_index)
                try:
                    messages += self._take(place, part)
                except ClientError as failure:
                    failures.append(failure)
        if failures and not messages:
            raise failures[0]  # Else it shows again after the messages that did come.
        return messages

    def _take(self, place: TopicPartition, part: wire.PartitionData) -> list[Message]:
        if part.error_code:
            self._cluster.forget(place.topic)
            check(part.error_code, about=f"{place} at offset {self.positions[place]}")
        messages, self.positions[place] = unpack(place, part.records, offset=self.positions[place])
        return messages

    async def _request(self, positions: Mapping[TopicPartition, Offset]) -> wire.Request:
        topics: dict[str, wire.FetchTopic] = {}
        for place, offset in positions.items():
            known = await self._cluster.topic(place.topic)
            self._names[known.id] = known.name
            if self._told.get(place) == offset:
                continue
            topics.setdefault(known.name, wire.FetchTopic(known.name, known.id)).partitions.append(
                wire.FetchPartition(
                    place.partition,
                    fetch_offset=offset,
                    partition_max_bytes=self.settings.partition_bytes_max,
                )
            )
        return wire.Request(
            max_wait_ms=self.settings.wait_ms,
            min_bytes=1,
            max_bytes=self.settings.fetch_bytes_max,
            session_id=self._session_id,
            session_epoch=self._epoch,
            topics=list(topics.values()),
        )
