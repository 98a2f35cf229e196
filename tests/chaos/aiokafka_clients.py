"""Clients of aiokafka: idempotent producers, plain readers, members of a classic group."""

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from functools import partial

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import KafkaError

from ottla.simulation.history.operations import (
    Assign,
    Commit,
    Committed,
    Key,
    Kind,
    Outcome,
    Owned,
    Poll,
    Send,
)
from tests.chaos.clients import (
    COMMIT_SECONDS,
    COMMITTED_SECONDS,
    DELIVERY_MS,
    RECORDS_MAX,
    TIMEOUT_MS,
    UNANSWERED_MAX,
    Lives,
    Setting,
    starts,
    value_of,
)
from tests.chaos.recorder import Begun

STOP_SECONDS_MAX = 10.0
RETRY_SECONDS = 0.2


async def write(setting: Setting, lives: Lives) -> None:
    while not setting.writing.is_set():
        await _Writer(setting, lives).live()


class _Writer:
    def __init__(self, setting: Setting, lives: Lives) -> None:
        self._setting = setting
        self._lives = lives
        self._process = lives.begin()
        self._has_failed = False
        self._unanswered = 0

    async def live(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._setting.bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=5,
            request_timeout_ms=DELIVERY_MS,
            metadata_max_age_ms=2_000,
        )
        if not await _started(producer):
            return
        pause = 1 / self._setting.sends_per_second
        while not (self._setting.writing.is_set() or self._has_failed or self._lives.is_over()):
            if self._unanswered < UNANSWERED_MAX:
                await self._send(producer)
            await asyncio.sleep(pause)
        await _stopped(producer, DELIVERY_MS / 1000)

    async def _send(self, producer: AIOKafkaProducer) -> None:
        partition = self._lives.chance.randrange(self._setting.partitions)
        value = self._lives.next_value()
        send = Send(self._setting.key(partition), value)
        begun = self._setting.recorder.begin(self._process, Kind.SEND, send)
        try:
            payload = self._lives.padded(value)
            future = await producer.send(self._setting.topic, payload, partition=partition)
        except KafkaError:
            self._has_failed = True
            self._setting.recorder.end(begun, Outcome.INFO)
            return
        self._unanswered += 1
        future.add_done_callback(partial(self._answered, begun, send))

    def _answered(self, begun: Begun, send: Send, future: "asyncio.Future[object]") -> None:
        self._unanswered -= 1
        if future.cancelled() or future.exception() is not None:
            self._has_failed = True
            self._setting.recorder.end(begun, Outcome.INFO)
            return
        offset = getattr(future.result(), "offset", -1)
        known = offset if offset >= 0 else None
        self._setting.recorder.end(begun, Outcome.OK, Send(send.key, send.value, known))


def _found(
    polled: dict[TopicPartition, list[object]], setting: Setting
) -> dict[Key, list[tuple[int, str]]]:
    return {
        setting.key(place.partition): [
            (record.offset, value_of(record.value))  # type: ignore[attr-defined]
            for record in records
        ]
        for place, records in polled.items()
        if records
    }


async def read(setting: Setting, lives: Lives) -> None:
    positions: dict[int, int] = {}
    while not setting.reading.is_set():
        process = lives.begin()
        reader = _consumer(setting)
        if not await _started(reader):
            continue
        begins = starts(positions, range(setting.partitions), lives.chance)
        places = {number: TopicPartition(setting.topic, number) for number in begins}
        reader.assign(list(places.values()))
        for number, at in begins.items():
            reader.seek(places[number], at)
        setting.recorder.at_once(process, Kind.ASSIGN, Assign(setting.keys))
        while not (setting.reading.is_set() or lives.is_over()):
            begun = setting.recorder.begin(process, Kind.POLL)
            try:
                polled = await reader.getmany(timeout_ms=300, max_records=RECORDS_MAX)
            except KafkaError:
                setting.recorder.drop(begun)
                break
            if found := _found(polled, setting):
                setting.recorder.end(begun, Outcome.OK, Poll(found))
                positions |= {tp.partition: records[-1].offset for tp, records in polled.items()}
            else:
                setting.recorder.drop(begun)
        await _stopped(reader)


async def join(setting: Setting, lives: Lives, group: str) -> None:
    while not setting.reading.is_set():
        await _Member(setting, lives, group).live()


class _Member(ConsumerRebalanceListener):
    def __init__(self, setting: Setting, lives: Lives, group: str) -> None:
        self._setting = setting
        self._lives = lives
        self._group = group
        self._process = lives.begin()
        self._reader = _consumer(
            setting,
            group_id=group,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            partition_assignment_strategy=[RoundRobinPartitionAssignor],
        )
        self._rebalanced: set[Key] = set()
        self._positions: dict[TopicPartition, int] = {}  # Of what it owns.
        self._commit_at = self._look_at = 0.0

    async def live(self) -> None:
        self._setting.recorder.at_once(self._process, Kind.SUBSCRIBE)
        self._reader.subscribe([self._setting.topic], listener=self)
        if not await _started(self._reader):
            return
        while not (self._setting.reading.is_set() or self._lives.is_over()):
            if not await self._poll():
                break
            now = time.monotonic()
            if self._positions and now > self._commit_at:
                self._commit_at = now + COMMIT_SECONDS
                await self._commit()
            if self._positions and now > self._look_at:
                self._look_at = now + COMMITTED_SECONDS
                await self._look()
        await _stopped(self._reader)

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._moved(revoked)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._moved(assigned)
        keys = [self._setting.key(place.partition) for place in assigned]
        generation = self._reader._coordinator.generation
        owned = Owned(self._group, generation, keys)
        self._setting.recorder.at_once(self._process, Kind.GROUP, owned)

    def _moved(self, places: Collection[TopicPartition]) -> None:
        for place in places:
            self._rebalanced.add(self._setting.key(place.partition))
            self._positions.pop(place, None)

    async def _poll(self) -> bool:
        begun = self._setting.recorder.begin(self._process, Kind.POLL)
        try:
            polled = await self._reader.getmany(timeout_ms=300, max_records=RECORDS_MAX)
        except KafkaError:
            self._setting.recorder.drop(begun)
            return False
        rebalanced, self._rebalanced = self._rebalanced, set()
        found = _found(polled, self._setting)
        if not (found or rebalanced):
            self._setting.recorder.drop(begun)
            return True
        self._setting.recorder.end(begun, Outcome.OK, Poll(found), rebalanced=sorted(rebalanced))
        for place, records in polled.items():
            self._positions[place] = records[-1].offset + 1
        return True

    async def _commit(self) -> None:
        recorder = self._setting.recorder
        offsets = dict(self._positions)
        steps = [Commit(self._group, self._setting.key(p.partition), o) for p, o in offsets.items()]
        begun = recorder.begin(self._process, Kind.GROUP, *steps)
        try:
            await asyncio.wait_for(self._reader.commit(offsets), TIMEOUT_MS / 1000)
        except (KafkaError, TimeoutError):
            recorder.end(begun, Outcome.INFO)
            return
        recorder.end(begun, Outcome.OK)

    async def _look(self) -> None:
        """One after the other, as this client can; it takes a group's error for "none", too."""
        for place in list(self._positions):
            begun = self._setting.recorder.begin(self._process, Kind.GROUP)
            try:
                offset = await asyncio.wait_for(self._reader.committed(place), TIMEOUT_MS / 1000)
            except (KafkaError, TimeoutError):
                self._setting.recorder.drop(begun)
                return
            if offset is None:
                self._setting.recorder.drop(begun)
                continue
            fetched = Committed(self._group, self._setting.key(place.partition), offset)
            self._setting.recorder.end(begun, Outcome.OK, fetched)


def _consumer(setting: Setting, **more: object) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=setting.bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        request_timeout_ms=TIMEOUT_MS,
        metadata_max_age_ms=2_000,
        fetch_max_wait_ms=200,
        **more,
    )


async def _started(client: AIOKafkaProducer | AIOKafkaConsumer) -> bool:
    try:
        await client.start()
    except KafkaError:
        await _stopped(client)
        await asyncio.sleep(RETRY_SECONDS)
        return False
    return True


async def _stopped(
    client: AIOKafkaProducer | AIOKafkaConsumer, seconds_max: float = STOP_SECONDS_MAX
) -> None:
    """However it ends, be it that it cancelled itself: nobody uses it any more."""
    with suppress(KafkaError, TimeoutError, OSError, asyncio.CancelledError):
        await asyncio.wait_for(client.stop(), seconds_max)
