"""Good clients beside hostile ones, against a real process: the good ones must not notice.

Hostile clients (`attacker.py`) send what no honest one does: mutated frames, pipelined behind muted
connections, extreme numbers, batches that claim what they do not hold, bombs of every codec. Runs
for OTTLA_HOSTILE_SECONDS from the seed OTTLA_HOSTILE_SEED (random unless set). Greedy clients
(`greedy_clients.py`) send honest requests, but pipelined without end.
"""

import math
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import defaultdict
from pathlib import Path
from struct import pack
from typing import Final

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from ottla.protocol.apis import ApiKey
from ottla.protocol.header import RequestHeader, encode_request_header
from tests.conformance.broker_process import BrokerProcess, free_ports
from tests.conformance.librdkafka import create
from tests.process import attacker, greedy_clients
from tests.process.conftest import NewBroker
from tests.process.test_memory import Growth

SECONDS: Final = float(os.environ.get("OTTLA_HOSTILE_SECONDS", "15"))
LONG_SECONDS: Final = float(os.environ.get("OTTLA_HOSTILE_LONG_SECONDS", "200"))
SEED: Final = int(os.environ.get("OTTLA_HOSTILE_SEED", str(random.SystemRandom().getrandbits(31))))
HOSTILE_TOPICS: Final = {
    "h-plain": {},
    "h-compacted": {"cleanup_policy": "compact", "segment_bytes": str(1 << 20)},
    "h-append": {"message_timestamp_type": "LogAppendTime"},
    "h-gzip": {"compression_type": "gzip"},
    "h-zstd": {
        "compression_type": "zstd",
        "cleanup_policy": "compact",
        "message_timestamp_type": "LogAppendTime",
    },
    "h-old": {"message_timestamp_before_max_ms": "100000"},
}
THREADS: Final = 4
PARTITIONS: Final = 3
RECORDS_PER_SECOND: Final = 200

# Two cores may be shared with other tests, so that times measured by the wall are generous; a turn
# is CPU time. Four batches of 64 MiB may be unfolded at once.
GOOD_SECONDS_MAX: Final = 5.0
TURN_SECONDS_MAX: Final = 0.1
GROWTH_MB_MAX: Final = 500
GREEDY_CONNECTIONS: Final = 10
GREEDY_SECONDS: Final = 6.0
# One turn is some 20 ms of CPU time, of which the broker gets a part on a busy machine.
ROUND_TRIP_SECONDS_MAX: Final = 0.5


class Good(threading.Thread):
    """Produces numbered records to each partition, and reads them back as a group of one."""

    def __init__(self, bootstrap: str, topic: str, end: float) -> None:
        super().__init__(daemon=True)
        self._servers, self._topic, self._end = bootstrap, topic, end
        self.errors: list[str] = []
        self.seconds: list[float] = []  # From produce to acknowledgement.
        self.sent = 0
        self.read: dict[int, list[bytes | None]] = defaultdict(list)
        self.assigned = threading.Event()

    def run(self) -> None:
        reading = threading.Thread(target=self._read, daemon=True)
        reading.start()
        if not self.assigned.wait(30):
            self.errors.append("the group got no assignment")
            return
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "error_cb": self._note,
            }
        )
        while time.monotonic() < self._end:
            for partition in range(PARTITIONS):
                began = time.monotonic()
                producer.produce(
                    self._topic,
                    key=b"%d" % self.sent,
                    value=b"%d" % self.sent,
                    partition=partition,
                    on_delivery=lambda error, _, began=began: self._delivered(error, began),
                )
            self.sent += 1
            producer.poll(PARTITIONS / RECORDS_PER_SECOND)
        if producer.flush(30):
            self.errors.append("records were not answered")
        reading.join(60)

    def _delivered(self, error: KafkaError | None, began: float) -> None:
        self.seconds.append(time.monotonic() - began)
        if error is not None:
            self.errors.append(f"not delivered: {error}")

    def _note(self, error: KafkaError) -> None:
        self.errors.append(f"producer or consumer: {error}")

    def _read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": f"good-{self._topic}",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "error_cb": self._note,
            }
        )
        consumer.subscribe([self._topic], on_assign=lambda *_: self.assigned.set())
        while not self._is_all_read():
            message: Message | None = consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                self.errors.append(f"read: {message.error()}")
            else:
                self.read[message.partition()].append(message.value())
        consumer.close()

    def _is_all_read(self) -> bool:
        if time.monotonic() < self._end:
            return False
        count = sum(map(len, self.read.values()))
        return count >= PARTITIONS * self.sent or time.monotonic() > self._end + 60

    def check(self) -> None:
        assert not self.errors, self.errors[:5]
        expected = [b"%d" % number for number in range(self.sent)]
        for partition in range(PARTITIONS):
            assert self.read[partition] == expected, f"partition {partition} of {self._topic}"

    @property
    def p99(self) -> float:
        return sorted(self.seconds)[len(self.seconds) * 99 // 100]


def turns(metrics: str) -> dict[float, int]:
    """How many turns of the loop there were within each bound, in seconds."""
    page = urllib.request.urlopen(f"http://{metrics}/metrics", timeout=10).read().decode()
    found = re.findall(r'ottla_loop_turn_seconds_bucket{le="([^"]+)"} (\d+)', page)
    return {float(bound): int(count) for bound, count in found}


def longest_turn(before: dict[float, int], after: dict[float, int]) -> float:
    """The least bound that all turns between are within."""
    counts = {bound: after[bound] - before[bound] for bound in after}
    return min(bound for bound, count in counts.items() if count == counts[math.inf])


def attack(broker: BrokerProcess, seconds: float) -> subprocess.Popen[bytes]:
    order = [str(broker.port), str(SEED), str(seconds), str(THREADS), *HOSTILE_TOPICS]
    return subprocess.Popen([sys.executable, attacker.__file__, *order], stdout=subprocess.PIPE)


def endure(new_broker: NewBroker, seconds: float) -> None:
    metrics = f"127.0.0.1:{free_ports(1)[0]}"
    broker = new_broker(
        auto_create_topics_enable="false",
        ottla_metrics_listener=metrics,
        log_cleaner_backoff_ms="500",
        log_cleaner_min_cleanable_ratio="0.01",
    ).start()
    create(broker.bootstrap, "good", PARTITIONS)
    create(broker.bootstrap, "good-compacted", PARTITIONS, cleanup_policy="compact")
    for topic, config in HOSTILE_TOPICS.items():
        create(broker.bootstrap, topic, **config)
    growth = Growth(broker)
    end = time.monotonic() + seconds
    good = [Good(broker.bootstrap, topic, end) for topic in ("good", "good-compacted")]
    for each in good:
        each.start()
    for each in good:
        each.assigned.wait(30)  # The coordinator is imported and loaded with the first group.
    before = turns(metrics)
    attacking = attack(broker, seconds)
    streams = int(attacking.communicate(timeout=seconds + 60)[0])
    for each in good:
        each.join(120)
    tell(f"seed {SEED}: {streams} hostile streams, {sum(each.sent for each in good)} good records")
    assert broker.is_alive, broker.log_tail()
    p99, turn = max(each.p99 for each in good), longest_turn(before, turns(metrics))
    tell(f"p99 {p99:.3f} s, longest turn {turn} s, growth {growth.peak_mb:.0f} MB")
    for each in good:
        each.check()
    log = broker.log_file.read_text(errors="replace").splitlines()
    failures = [line for line in log if "Traceback" in line]
    assert not failures, failures[:2]
    assert p99 < GOOD_SECONDS_MAX
    assert turn <= TURN_SECONDS_MAX, [line for line in log if "a turn of" in line][:5]
    assert growth.peak_mb < GROWTH_MB_MAX
    assert streams > 5 * seconds, "hostile clients were served as well"
    assert broker.stop() == 0


def tell(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201  pytest shows it with a failure, or with -s.


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="The resident set is read from /proc."
)


@pytest.mark.timeout(SECONDS + 120)
def test_good_clients_do_not_notice_hostile_ones(new_broker: NewBroker) -> None:
    endure(new_broker, SECONDS)


@pytest.mark.slow
@pytest.mark.timeout(LONG_SECONDS + 120)
def test_good_clients_do_not_notice_hostile_ones_for_long(new_broker: NewBroker) -> None:
    endure(new_broker, LONG_SECONDS)


def round_trips(broker: BrokerProcess, seconds: float) -> list[float]:
    """How long a client waits for each answer that asks one small thing after the other."""
    frame = encode_request_header(RequestHeader(ApiKey.API_VERSIONS, 0, 1, "good"))
    taken, end = [], time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", broker.port), timeout=60) as connection:
        answers = connection.makefile("rb")
        while (began := time.monotonic()) < end:
            connection.sendall(pack(">i", len(frame)) + frame)
            size = int.from_bytes(answers.read(4), "big")
            assert len(answers.read(size)) == size
            taken.append(time.monotonic() - began)
            time.sleep(0.005)
    return sorted(taken)


def p99_of(taken: list[float]) -> float:
    return taken[len(taken) * 99 // 100]


def test_small_requests_are_answered_while_others_pipeline(new_broker: NewBroker) -> None:
    metrics = f"127.0.0.1:{free_ports(1)[0]}"
    broker = new_broker(ottla_metrics_listener=metrics).start()
    create(broker.bootstrap, "greedy")
    idle = p99_of(round_trips(broker, 1.0))
    before = turns(metrics)
    order = [str(broker.port), str(GREEDY_SECONDS), str(GREEDY_CONNECTIONS), "greedy"]
    with subprocess.Popen(
        [sys.executable, greedy_clients.__file__, *order], stdout=subprocess.PIPE, text=True
    ) as greedy:
        taken = round_trips(broker, GREEDY_SECONDS)
        sent = [int(count) for count in greedy.communicate(timeout=60)[0].split()]
    busy, turn = p99_of(taken), longest_turn(before, turns(metrics))
    tell(f"p99 {idle:.3f} s idle, {busy:.3f} s busy, longest turn {turn} s, greedy bytes {sent}")
    assert busy < max(ROUND_TRIP_SECONDS_MAX, 20 * idle)
    assert turn <= TURN_SECONDS_MAX
    assert all(sent), "greedy clients are served as well"
    assert broker.stop() == 0
