"""Clients of librdkafka: idempotent producers, plain readers, members of groups."""

import time
from collections import defaultdict
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Position

from ottla.simulation.history.operations import (
    NO_OFFSET,
    Assign,
    Commit,
    Committed,
    Key,
    Kind,
    Outcome,
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

QUICK = {
    "socket.timeout.ms": TIMEOUT_MS,
    "socket.connection.setup.timeout.ms": 2_000,
    "reconnect.backoff.max.ms": 1_000,
    "topic.metadata.refresh.interval.ms": 2_000,
    "log_level": 0,
}


def write(setting: Setting, lives: Lives) -> None:
    while not setting.writing.is_set():
        _Writer(setting, lives).live()


class _Writer:
    def __init__(self, setting: Setting, lives: Lives) -> None:
        self._setting = setting
        self._lives = lives
        self._process = lives.begin()
        self._has_failed = False
        self._producer = Producer(
            {
                **QUICK,
                "bootstrap.servers": setting.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "request.timeout.ms": TIMEOUT_MS,
                "message.timeout.ms": DELIVERY_MS,
                "compression.type": lives.chance.choice(["none", "lz4", "zstd"]),
            }
        )

    def live(self) -> None:
        pause = 1 / self._setting.sends_per_second
        while not (self._setting.writing.is_set() or self._has_failed or self._lives.is_over()):
            if len(self._producer) < UNANSWERED_MAX:
                self._send()
            self._producer.poll(pause)
        if not self._has_failed:
            self._producer.flush(self._setting.flush_seconds)
        self._producer.purge()
        self._producer.flush(1)

    def _send(self) -> None:
        partition = self._lives.chance.randrange(self._setting.partitions)
        value = self._lives.next_value()
        send = Send(self._setting.key(partition), value)
        begun = self._setting.recorder.begin(self._process, Kind.SEND, send)
        self._producer.produce(
            self._setting.topic,
            self._lives.padded(value),
            partition=partition,
            on_delivery=partial(self._answered, begun, send),
        )

    def _answered(
        self, begun: Begun, send: Send, error: KafkaError | None, message: Message
    ) -> None:
        if error is not None:
            self._has_failed = True
            self._setting.recorder.end(begun, Outcome.INFO)
            return
        offset = message.offset()
        known = offset if offset is not None and offset >= 0 else None
        self._setting.recorder.end(begun, Outcome.OK, Send(send.key, send.value, known))


def _found(messages: list[Message], setting: Setting) -> dict[Key, list[tuple[int, str]]]:
    found: dict[Key, list[tuple[int, str]]] = defaultdict(list)
    for message in messages:
        if message.error() is None:
            found[setting.key(message.partition())].append(
                (message.offset(), value_of(message.value()))
            )
    return dict(found)


def read(setting: Setting, lives: Lives) -> None:
    positions: dict[int, int] = {}
    while not setting.reading.is_set():
        process = lives.begin()
        reader = _consumer(setting, "no-group-is-joined")
        begins = starts(positions, range(setting.partitions), lives.chance)
        reader.assign([Position(setting.topic, number, at) for number, at in begins.items()])
        setting.recorder.at_once(process, Kind.ASSIGN, Assign(setting.keys))
        while not (setting.reading.is_set() or lives.is_over()):
            begun = setting.recorder.begin(process, Kind.POLL)
            messages = reader.consume(RECORDS_MAX, timeout=0.3)
            if found := _found(messages, setting):
                setting.recorder.end(begun, Outcome.OK, Poll(found))
                positions |= {m.partition(): m.offset() for m in messages if m.error() is None}
            else:
                setting.recorder.drop(begun)
        reader.close()


def join(setting: Setting, lives: Lives, group: str, protocol: str) -> None:
    while not setting.reading.is_set():
        _Member(setting, lives, group, protocol).live()


class _Member:
    def __init__(self, setting: Setting, lives: Lives, group: str, protocol: str) -> None:
        self._setting = setting
        self._lives = lives
        self._group = group
        self._process = lives.begin()
        classic = {"partition.assignment.strategy": "roundrobin", "session.timeout.ms": 6_000}
        more = classic if protocol == "classic" else {"group.protocol": protocol}
        self._reader = _consumer(setting, group, **more)
        self._rebalanced: set[Key] = set()
        self._positions: dict[int, int] = {}  # Of what it owns.
        self._commit_at = self._look_at = 0.0

    def live(self) -> None:
        self._setting.recorder.at_once(self._process, Kind.SUBSCRIBE)
        self._reader.subscribe(
            [self._setting.topic], on_assign=self._moved, on_revoke=self._moved, on_lost=self._moved
        )
        while not (self._setting.reading.is_set() or self._lives.is_over()):
            self._poll()
            now = time.monotonic()
            if self._positions and now > self._commit_at:
                self._commit_at = now + COMMIT_SECONDS
                self._commit()
            if self._positions and now > self._look_at:
                self._look_at = now + COMMITTED_SECONDS
                self._look()
        self._reader.close()

    def _moved(self, _: Consumer, places: list[Position]) -> None:
        for place in places:
            self._rebalanced.add(self._setting.key(place.partition))
            self._positions.pop(place.partition, None)

    def _poll(self) -> None:
        begun = self._setting.recorder.begin(self._process, Kind.POLL)
        messages = self._reader.consume(RECORDS_MAX, timeout=0.3)
        rebalanced, self._rebalanced = self._rebalanced, set()
        found = _found(messages, self._setting)
        if not (found or rebalanced):
            self._setting.recorder.drop(begun)
            return
        self._setting.recorder.end(begun, Outcome.OK, Poll(found), rebalanced=sorted(rebalanced))
        for message in messages:
            if message.error() is None:
                self._positions[message.partition()] = message.offset() + 1

    def _commit(self) -> None:
        setting = self._setting
        steps = [Commit(self._group, setting.key(p), at) for p, at in self._positions.items()]
        begun = setting.recorder.begin(self._process, Kind.GROUP, *steps)
        places = [Position(setting.topic, p, at) for p, at in self._positions.items()]
        try:
            answers = self._reader.commit(offsets=places, asynchronous=False)
        except KafkaException:
            # librdkafka may have tried before, and what it tells is the last attempt's.
            setting.recorder.end(begun, Outcome.INFO)
            return
        is_done = all(answer.error is None for answer in answers)
        setting.recorder.end(begun, Outcome.OK if is_done else Outcome.INFO)

    def _look(self) -> None:
        begun = self._setting.recorder.begin(self._process, Kind.GROUP)
        places = [Position(self._setting.topic, partition) for partition in self._positions]
        try:
            answers = self._reader.committed(places, timeout=TIMEOUT_MS / 1000)
        except KafkaException:
            self._setting.recorder.drop(begun)
            return
        steps = [
            Committed(
                self._group, self._setting.key(answer.partition), max(answer.offset, NO_OFFSET)
            )
            for answer in answers
            if answer.error is None
        ]
        self._setting.recorder.end(begun, Outcome.OK, *steps)


def drain(setting: Setting, seconds_max: float, kind: Kind = Kind.DRAIN) -> None:
    """Everything that is there, from the start, by a reader of its own."""
    recorder = setting.recorder
    deadline = time.monotonic() + seconds_max
    reader = _consumer(setting, "no-group-is-joined")
    begun = recorder.begin(f"drain-{kind}", kind)
    ends = {}
    for partition in range(setting.partitions):
        ends[partition] = _end_of(reader, Position(setting.topic, partition), deadline)
    reader.assign([Position(setting.topic, partition, 0) for partition in ends])
    found: dict[Key, list[tuple[int, str]]] = {key: [] for key in setting.keys}
    waiting = {partition for partition, end in ends.items() if end}
    while waiting:
        assert time.monotonic() < deadline, f"the end was not read within {seconds_max} s"
        for message in reader.consume(1000, timeout=1):
            if message.error() is None:
                where = found[setting.key(message.partition())]
                where.append((message.offset(), value_of(message.value())))
                if message.offset() >= ends[message.partition()] - 1:
                    waiting.discard(message.partition())
    recorder.end(begun, Outcome.OK, Poll(found))
    reader.close()


def _end_of(reader: Consumer, place: Position, deadline: float) -> int:
    while True:
        try:
            return reader.get_watermark_offsets(place, timeout=5)[1]
        except KafkaException:
            if time.monotonic() > deadline:
                raise


def _consumer(setting: Setting, group: str, **more: object) -> Consumer:
    return Consumer(
        {
            **QUICK,
            "bootstrap.servers": setting.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 200,
            **more,
        }
    )
