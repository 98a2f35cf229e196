"""Property: runs and the general path turn the same bytes into the same answers and the same logs.

Random streams of requests as clients send them, and as no client does: one or several partitions
and topics, with and without a producer id, duplicates, gaps, old epochs, batches that are refused,
frames with flipped, missing or additional bytes, cut anywhere into pieces.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.messages import produce as wire
from ottla.records.batch import Batch
from tests.unit.broker.produce.pairs import Pair, frame_of, two_brokers
from tests.unit.broker.requests import batch
from tests.unit.broker.serving import World

PARTITIONS = 3
BYTES_MAX = 4000
TOPICS: dict[str, dict[str, object]] = {
    "t": {"max_message_bytes": BYTES_MAX, "internal_segment_bytes": 1 << 20},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "compacted": {"cleanup_policy": "compact"},
    "packed": {"compression_type": "zstd"},
}


class Stream:
    """A client that draws its next request, and remembers the sequences of its producers."""

    def __init__(self, chance: Random, ids: dict[str, bytes], version: int) -> None:
        self._chance = chance
        self._ids = ids
        self._version = version
        self._sequences: dict[tuple[str, int, int], int] = {}
        self._count = 0

    def frames(self) -> bytes:
        chance = self._chance
        made = b""
        # As a client does: most requests are like the one before.
        parts = self._parts()
        acks = chance.choice((-1, 1, 1, 0))
        for _ in range(chance.randrange(1, 20)):
            if chance.random() < 0.2:
                parts, acks = self._parts(), chance.choice((-1, -1, 1, 0, 2))
            made += self._frame(parts, acks)
        return made

    def _parts(self) -> list[tuple[str, int]]:
        chance = self._chance
        count = 1 if chance.random() < 0.6 else chance.randrange(1, 6)
        names = ("t", "t", "t", "t", *TOPICS, "unknown")
        return [(chance.choice(names), chance.randrange(PARTITIONS + 1)) for _ in range(count)]

    def _frame(self, parts: list[tuple[str, int]], acks: int) -> bytes:
        self._count += 1
        topics: dict[str, wire.TopicProduceData] = {}
        for name, index in parts:
            topic_id = self._ids.get(name, b"?" * 16) if self._version >= 13 else bytes(16)
            topic = topics.setdefault(name, wire.TopicProduceData(name, topic_id))
            topic.partition_data.append(
                wire.PartitionProduceData(index, self._records(name, index))
            )
        request = wire.Request(acks=acks, timeout_ms=1000, topic_data=list(topics.values()))
        if self._chance.random() < 0.02:
            request.transactional_id = "transaction"
        body = bytearray(frame_of(request, self._version, self._count))
        self._spoil(body)
        return len(body).to_bytes(4, "big") + bytes(body)

    def _spoil(self, body: bytearray) -> None:
        chance = self._chance
        roll = chance.random()
        if roll < 0.03:
            # Not in the header: the general path serves other APIs as well.
            body[chance.randrange(8, len(body))] ^= 1 << chance.randrange(8)
        elif roll < 0.04:
            del body[chance.randrange(8, len(body)) :]
        elif roll < 0.05:
            body += chance.randbytes(3)

    def _records(self, name: str, index: int) -> bytes | bytearray | None:
        chance = self._chance
        roll = chance.random()
        if roll < 0.35:
            return self._plain()
        if roll < 0.85:
            return self._of_producer(name, index)
        return self._bad()

    def _plain(self, **options: int) -> bytearray:
        chance = self._chance
        values = [bytes(chance.choice((1, 90, 700))) for _ in range(chance.choice((1, 1, 2, 5)))]
        return batch(*values, codec=chance.choice((0, 0, 0, 1, 4)), **options)

    def _of_producer(self, name: str, index: int) -> bytearray:
        chance = self._chance
        producer_id = chance.randrange(2)
        key = (name, index, producer_id)
        sequence = self._sequences.get(key, 0)
        roll = chance.random()
        if roll < 0.1:  # A duplicate, or a gap.
            sequence = max(0, sequence + chance.choice((-1, -3, 1, 7)))
        epoch = 0 if roll < 0.95 else chance.randrange(3)
        made = self._plain(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        if roll >= 0.1:
            self._sequences[key] = sequence + Batch(made).count
        return made

    def _bad(self) -> bytes | bytearray | None:
        chance = self._chance
        good = self._plain()
        flipped = bytearray(good)
        flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        older = bytearray(good)
        older[16] = chance.randrange(2)  # Its magic, which the checksum leaves out.
        many = bytearray(good)
        many[57:61] = (1 << 24).to_bytes(4, "big")
        Batch(many).seal()
        return chance.choice(
            [
                *(None, b"", good + good, good[: chance.randrange(len(good))], flipped),
                *(older, many),
                batch(b"x" * (BYTES_MAX + 1)),
                batch(b"c", is_control=True),
                batch(b"f", at=1 << 50),
                batch(b"o", at=0),
                batch(b"s", producer_id=5, producer_epoch=0, base_sequence=-1),
                batch(
                    b"t", producer_id=6, producer_epoch=0, base_sequence=0, is_transactional=True
                ),
            ]
        )


def compare_logs(worlds: tuple[World, World]) -> None:
    for name in list(TOPICS)[1:]:
        for index in range(PARTITIONS):
            first, second = (world.log_bytes(name, index) for world in worlds)
            assert first == second


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_same_bytes_in_give_same_bytes_out(version: int, seed: int) -> None:
    chance = Random(seed)
    with pytest.MonkeyPatch.context() as patch, two_brokers(patch) as worlds:
        pair = Pair(worlds, partitions=PARTITIONS, **TOPICS["t"])
        ids = {"t": pair.topic_id}
        for name, config in list(TOPICS.items())[1:]:
            for world in worlds:
                ids[name] = world.topic(name, PARTITIONS, **config)
        stream = Stream(chance, ids, version)
        for _ in range(12):
            sent = stream.frames()
            cut = chance.randrange(len(sent)) if chance.random() < 0.5 else len(sent)
            room = chance.randrange(2000) if chance.random() < 0.1 else 1 << 40
            for client, world in zip(pair.clients, worlds, strict=True):
                world.disk.capacity_bytes = world.disk.used_bytes + room
                for part in (sent[:cut], sent[cut:]):
                    client.feed_bytes(part)
                    world.settle()
                world.disk.capacity_bytes = 1 << 40
                world.pass_ms(2000)
            pair.compare()
            compare_logs(worlds)
