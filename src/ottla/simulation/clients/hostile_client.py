"""A client that wants to harm: whatever it may send over its own connections, from a seed.

It writes to topics of its own, reads and asks about anything, and never uses what administrates a
cluster: what such a request asks for is no accident. Nobody else may notice it. The frames are for
real sockets as well; `HostileClient` sends them over the network seam.
"""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from struct import pack
from typing import Any, Final

from ottla.env.network import Address, Channel, Network
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import fetch, list_offsets, offset_commit, produce
from ottla.simulation.clients.breakage import build, mutate
from ottla.simulation.clients.hostile_batches import honest_batch, hostile_batch

GROUP: Final = "hostile"
TOPIC_PREFIX: Final = "hostile-"  # Of topics in a simulation.
# Read-only, or about the client's own group and producer.
ASKED: Final = (
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.API_VERSIONS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
)
EXTREMES: Final = (0, 1, -1, -2, -3, -4, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**62)
MUTED_BY: Final = 45  # So many requests take a slice of a loop turn; the rest is served later.
PIECES_MAX: Final = 4
_HEAD_BYTES: Final = 4  # API key and version: a mutation there would be another request.


class HostileFrames:
    """Streams of requests, with their sizes, of which most are wrong in some way."""

    def __init__(self, rng: Random, topics: Sequence[str], now: Callable[[], int]) -> None:
        """`topics` are the client's own, of one partition each; `now` is the wall time."""
        self._rng = rng
        self._topics = topics
        self._now = now

    def stream(self) -> bytes:
        """All that is sent over one connection."""
        rng = self._rng
        kinds = (self._produce, self._search, self._fetch, self._commit, self._anything)
        frames = [rng.choice(kinds)() for _ in range(rng.choice((1, 3, 10)))]
        if rng.random() < 0.4:
            asked = self._frame(ApiKey.API_VERSIONS, 0, b"")
            frames = [*frames[:1], *[asked] * MUTED_BY, *frames]
        stream = b"".join(self._sized(frame) for frame in frames)
        if rng.random() < 0.2:
            stream = stream[: rng.randrange(len(stream))]
        return stream

    def _sized(self, frame: bytes) -> bytes:
        rng = self._rng
        if rng.random() < 0.4:
            frame = frame[:_HEAD_BYTES] + mutate(frame[_HEAD_BYTES:], rng)
        size = len(frame)
        if rng.random() < 0.02:
            size = rng.choice((0, -1, 1, 3, size - 1, size + 1, 2**31 - 1, -(2**31), 100 << 20))
        return pack(">i", size) + frame

    def _frame(self, key: int, version: int, body: bytes) -> bytes:
        client_id = self._rng.choice(("hostile", "hostile", "", "x" * 300))
        correlation_id = self._rng.getrandbits(31)
        return encode_request_header(RequestHeader(key, version, correlation_id, client_id)) + body

    def _request(self, request: Any, version: int) -> bytes:  # noqa: ANN401
        return self._frame(request.API_KEY, version, encode(request, version))

    def _produce(self) -> bytes:
        rng = self._rng
        version = rng.choice((3, 5, 7, 8, 9, 12))
        parts = [
            produce.PartitionProduceData(rng.choice((0, 0, 0, 9, -1)), self._batch())
            for _ in range(rng.choice((1, 1, 1, 2, 4)))
        ]
        topic = produce.TopicProduceData(name=rng.choice(self._topics), partition_data=parts)
        acks = rng.choice((1, 1, -1, 0, 7))
        return self._request(
            produce.Request(acks=acks, timeout_ms=1000, topic_data=[topic]), version
        )

    def _batch(self) -> bytes:
        make = honest_batch if self._rng.random() < 0.3 else hostile_batch
        return make(self._rng, self._now())

    def _search(self) -> bytes:
        timestamp = self._rng.choice((self._now(), self._now() - 1000, *EXTREMES))
        part = list_offsets.ListOffsetsPartition(0, timestamp=timestamp)
        topic = list_offsets.ListOffsetsTopic(self._rng.choice(self._topics), [part])
        return self._request(list_offsets.Request(topics=[topic]), 7)

    def _fetch(self) -> bytes:
        rng = self._rng
        part = fetch.FetchPartition(
            0, fetch_offset=rng.choice(EXTREMES), partition_max_bytes=rng.choice((0, -1, 1 << 20))
        )
        topic = fetch.FetchTopic(topic=rng.choice(self._topics), partitions=[part])
        request = fetch.Request(
            max_wait_ms=rng.choice((0, 10, -1)),
            min_bytes=rng.choice((0, 1, -1, 2**31 - 1)),
            max_bytes=rng.choice((0, 1 << 20, 2**31 - 1)),
            topics=[topic],
        )
        return self._request(request, rng.choice((4, 7, 11, 12)))

    def _commit(self) -> bytes:
        rng = self._rng
        part = offset_commit.OffsetCommitRequestPartition(
            0, committed_offset=rng.choice(EXTREMES), committed_metadata="m" * rng.choice((0, 5000))
        )
        topic = offset_commit.OffsetCommitRequestTopic(rng.choice(self._topics), partitions=[part])
        request = offset_commit.Request(GROUP, topics=[topic])
        request.retention_time_ms = rng.choice(EXTREMES)
        return self._request(request, rng.choice((2, 4)))

    def _anything(self) -> bytes:
        key = self._rng.choice(ASKED)
        cls = request_class(key)
        version = self._rng.choice(cls.VERSIONS)  # type: ignore[attr-defined]
        return self._frame(key, version, encode(build(cls, version, self._rng), version))


class HostileClient:
    """Connects, sends a stream in pieces, reads or does not read, leaves; until told to stop."""

    def __init__(
        self, network: Network, address: Address, frames: HostileFrames, rng: Random
    ) -> None:
        self._network = network
        self._address = address
        self._frames = frames
        self._rng = rng
        self.is_over = False
        self.streams = 0

    async def run(self) -> None:
        while not self.is_over:
            await self._attack()
            await asyncio.sleep(self._rng.expovariate(1 / 0.05))

    async def _attack(self) -> None:
        rng = self._rng
        try:
            channel = await self._network.connect(*self._address, _Deaf)
        except OSError:
            return  # It is down; others see to that.
        self.streams += 1
        stream = self._frames.stream()
        if rng.random() < 0.3:
            channel.pause_reading()
        cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(PIECES_MAX)))
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            if start < end:
                channel.send([stream[start:end]])
            await asyncio.sleep(rng.expovariate(1 / 0.01))
        channel.close()


class _Deaf:
    """A peer that drops what it receives."""

    def __init__(self, _: Channel) -> None:
        self._buffer = memoryview(bytearray(64 << 10))

    def buffer(self) -> memoryview:
        return self._buffer

    def received(self, count: int) -> None: ...
    def sent(self) -> None: ...
    def closed(self) -> None: ...
