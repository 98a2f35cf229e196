"""Garbage on many connections of a live broker, while an honest client works on another.

Runs for OTTLA_FUZZ_SECONDS (15 unless set) from the seed OTTLA_FUZZ_SEED (random unless set). The
broker must neither fall silent nor grow, and the honest client must not notice anything.
"""

import logging
import os
import random
import socket
import struct
import threading
import time
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ottla.broker.wire.apis import Listener, served_on
from ottla.protocol.apis import ApiKey, request_class
from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.simulation.clients.breakage import build, mutate
from ottla.testing import Broker

SERVED = served_on(Listener.BROKER)

SECONDS: Final = float(os.environ.get("OTTLA_FUZZ_SECONDS", "15"))
SEED: Final = int(os.environ.get("OTTLA_FUZZ_SEED", str(random.SystemRandom().getrandbits(32))))
GROWTH_BYTES_MAX: Final = 64 << 20
ANSWER_SECONDS_MAX: Final = 5.0
# Whatever these would do to the honest client's topics, or to the broker's own settings, is asked
# for and not an accident.
LEFT_OUT: Final = {
    ApiKey.DELETE_TOPICS,
    ApiKey.DELETE_RECORDS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
}


def frame(rng: random.Random) -> bytes:
    key = rng.choice([key for key in SERVED if key not in LEFT_OUT])
    cls = request_class(key)
    version = rng.choice(cls.VERSIONS)  # type: ignore[attr-defined]
    header = encode_request_header(RequestHeader(key, version, rng.getrandbits(31), "fuzz"))
    return header + encode(build(cls, version, rng), version)


def broken_stream(rng: random.Random) -> bytes:
    """A few frames, some of them broken inside, some with a size that lies."""
    stream = b""
    for _ in range(rng.randrange(1, 6)):
        body = frame(rng)
        if rng.random() < 0.8:
            body = mutate(body, rng)
        size = len(body)
        if rng.random() < 0.2:
            size = rng.choice([0, 1, -1, size - 1, size + 1, 2**31 - 1, 100 << 20, 600_000])
        stream += struct.pack(">i", size) + body
    return stream


def attack(address: tuple[str, int], rng: random.Random, end: float) -> int:
    """Connect, send garbage in odd pieces, read or do not read, leave; again and again."""
    streams = 0
    while time.monotonic() < end:
        stream = broken_stream(rng)
        streams += 1
        try:
            with socket.create_connection(address, timeout=1) as attacker:
                attacker.settimeout(0.02)
                cut = rng.randrange(len(stream) + 1)
                attacker.sendall(stream[:cut])
                attacker.sendall(stream[cut:])
                if rng.random() < 0.5:
                    while attacker.recv(65536):
                        pass
        except OSError:
            pass
    return streams


class Honest(threading.Thread):
    """Produces and reads back its own records all the time, and keeps the slowest round."""

    def __init__(self, servers: str, end: float) -> None:
        super().__init__()
        self._servers, self._end = servers, end
        self.rounds = 0
        self.slowest = 0.0
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:  # noqa: BLE001  The test raises it.
            self.error = error

    def _run(self) -> None:
        producer = Producer({"bootstrap.servers": self._servers, "linger.ms": 0})
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "unused",
                "enable.auto.commit": False,  # It would wait for a coordinator at its end.
            }
        )
        consumer.assign([TopicPartition("honest", 0, 0)])
        while time.monotonic() < self._end:
            started = time.monotonic()
            value = f"record {self.rounds}".encode()
            producer.produce("honest", value, partition=0)
            assert producer.flush(ANSWER_SECONDS_MAX) == 0, "a produce was not answered"
            message = consumer.poll(ANSWER_SECONDS_MAX)
            assert message is not None
            assert message.error() is None
            assert (message.offset(), message.value()) == (self.rounds, value)
            self.rounds += 1
            self.slowest = max(self.slowest, time.monotonic() - started)
        consumer.close()


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.timeout(SECONDS + 60)
def test_garbage_on_one_connection_never_harms_another(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    with Broker(process=True, auto_create_topics_enable=False) as broker:
        broker.create_topic("honest")
        host, port = broker.bootstrap_servers.split(":")
        warm_up_end = time.monotonic() + min(2.0, SECONDS / 4)
        attack((host, int(port)), random.Random(SEED), warm_up_end)
        before = resident_bytes(broker.pid)
        end = time.monotonic() + SECONDS
        honest = Honest(broker.bootstrap_servers, end)
        honest.start()
        streams = attack((host, int(port)), random.Random(SEED + 1), end)
        honest.join()
        told = f"seed {SEED}, {streams} streams of garbage, {honest.rounds} honest rounds"
        if honest.error is not None:
            honest.error.add_note(told)
            raise honest.error
        assert honest.rounds > 10, told
        assert honest.slowest < ANSWER_SECONDS_MAX, told
        assert resident_bytes(broker.pid) - before < GROWTH_BYTES_MAX, told
