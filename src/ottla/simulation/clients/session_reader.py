"""Reads partitions through an incremental fetch session (KIP-227), as most consumers do.

The first fetch names every partition; later ones only those whose position has changed, and the
broker remembers the others. What breaks the session, or the connection, starts a new one.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(slots=True)
class Session:
    """What a broker knows of this reader: nothing as long as the epoch is FULL_AND_NEW."""

    id: int = 0
    epoch: int = FULL_AND_NEW
    told: dict[TopicPartition, Offset] = field(default_factory=dict)  # Positions, as sent last.


class SessionReader:
    """As `ottla.client.reader.Reader`, with a fetch session at each leader."""

    def __init__(
        self,
        cluster: Cluster,
        offsets: Mapping[TopicPartition, Offset],
        settings: ReaderSettings,
    ) -> None:
        self.positions = dict(offsets)
        self.settings = settings
        self._cluster = cluster
        self._sessions: dict[NodeId, Session] = {}
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
                if not failure.is_retriable or clock.monotonic() > give_up:
                    raise
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if messages or clock.monotonic() >= deadline:
                return messages

    async def _fetch(self) -> list[Message]:
        places: dict[NodeId, list[TopicPartition]] = {}
        for place in self.positions:
            places.setdefault(await self._cluster.leader_id(place), []).append(place)
        work = (self._fetch_from(node, theirs) for node, theirs in places.items())
        messages: list[Message] = []
        failures: list[ClientError] = []
        for found in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(found, ClientError):
                failures.append(found)
            elif isinstance(found, BaseException):
                raise found
            else:
                messages += found
        if failures and not messages:
            raise failures[0]  # Else it shows again after the messages that did come.
        return messages

    async def _fetch_from(self, node: NodeId, places: list[TopicPartition]) -> list[Message]:
        session = self._sessions.pop(node, None)
        if session is None or session.told.keys() - places:
            session = Session()  # Partitions that another node leads now are to be forgotten.
        asked = {place: self.positions[place] for place in places}
        connection = await self._cluster.broker(node, lane=self)
        answer = await connection.ask(
            await self._request(session, asked),
            wire.Response,
            timeout_ms=self.settings.wait_ms + self._cluster.settings.request_ms_max,
        )
        if answer.error_code in BROKEN:
            return []
        check(answer.error_code, about=str(connection.address))
        messages: list[Message] = []
        failures: list[ClientError] = []
        for topic in answer.responses:
            for part in topic.partitions:
                place = TopicPartition(self._names[topic.topic_id], part.partition_index)
                try:
                    messages += self._take(place, part)
                except ClientError as failure:
                    failures.append(failure)
        if failures:
            if not messages:
                raise failures[0]
        elif answer.session_id:  # Without a session of its own it names everything, every time.
            self._sessions[node] = Session(answer.session_id, session.epoch + 1, asked)
        return messages

    def _take(self, place: TopicPartition, part: wire.PartitionData) -> list[Message]:
        if part.error_code:
            self._cluster.forget(place.topic)
            check(part.error_code, about=f"{place} at offset {self.positions[place]}")
        messages, self.positions[place] = unpack(place, part.records, offset=self.positions[place])
        return messages

    async def _request(
        self, session: Session, positions: Mapping[TopicPartition, Offset]
    ) -> wire.Request:
        topics: dict[str, wire.FetchTopic] = {}
        for place, offset in positions.items():
            known = await self._cluster.topic(place.topic)
            self._names[known.id] = known.name
            if session.told.get(place) == offset:
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
            session_id=session.id,
            session_epoch=session.epoch,
            topics=list(topics.values()),
        )
