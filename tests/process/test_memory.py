"""Memory stays bounded whatever clients do, and whoever behaves is served all the while.

Bounds are on the growth of the resident set at its peak. OTTLA_CONNECTIONS says how many
connections make a crowd (2,000 by default; 10,000 is the goal that the figures below are for).
"""

import contextlib
import os
import resource
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.protocol.codec import encode
from ottla.protocol.header import RequestHeader, encode_request_header
from ottla.protocol.messages import fetch, metadata, produce
from ottla.records.record import Record, build_batch
from tests.conformance.broker_process import BrokerProcess
from tests.conformance.librdkafka import consume, create
from tests.conformance.librdkafka import produce as produce_with_librdkafka
from tests.conformance.raw import Connection
from tests.process.conftest import NewBroker

CONNECTIONS = int(os.environ.get("OTTLA_CONNECTIONS", "2000"))
MB = 1 << 20
REQUEST_BYTES_MAX = 32 * MB  # queued.max.request.bytes in these tests.
DECOMPRESSED_BYTES_MAX = 64 * MB
SLACK_MB = 64
ANSWER_SECONDS_MAX = 2.0  # How long a small request of another client may take meanwhile.

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="The resident set is read from /proc."
)


@pytest.fixture
def broker(new_broker: NewBroker) -> BrokerProcess:
    allow_descriptors(CONNECTIONS + 500)
    made = new_broker(
        queued_max_request_bytes=str(REQUEST_BYTES_MAX),
        socket_request_max_bytes=str(REQUEST_BYTES_MAX),
        socket_listen_backlog_size="1000",
        ottla_record_decompressed_bytes_max=str(DECOMPRESSED_BYTES_MAX),
    )
    made.settings["message.max.bytes"] = str(60 * MB)
    made.start()
    create(made.bootstrap, "bystander")
    bystander(made)
    return made


def allow_descriptors(count: int) -> None:
    """For this process and for the brokers that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        pytest.skip(f"This user may open {hard} files, and the test needs {count}.")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))


class Growth:
    """How far the resident set grew at its peak, in MB."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._proc = Path(f"/proc/{broker.pid}")
        (self._proc / "clear_refs").write_text("5")  # Forget the peak so far.
        self._before = self._status("VmRSS")

    @property
    def peak_mb(self) -> float:
        return (self._status("VmHWM") - self._before) / 1024

    def _status(self, name: str) -> int:
        for line in (self._proc / "status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1])
        raise AssertionError(f"no {name}")


def bystander(broker: BrokerProcess) -> float:
    """A client that does nothing wrong; how long its slowest request took."""
    slowest = 0.0
    for _ in range(5):
        began = time.monotonic()
        with Connection(broker.bootstrap) as connection:
            answer = connection.ask(metadata.Request(topics=None), 12)
            assert not isinstance(answer, str), answer
        slowest = max(slowest, time.monotonic() - began)
    return slowest


@contextlib.contextmanager
def crowd(broker: BrokerProcess, count: int) -> Iterator[list[socket.socket]]:
    made: list[socket.socket] = []
    try:
        for number in range(count):
            # Several source addresses, as one has not enough ports for ten thousand in a hurry.
            source = (f"127.0.0.{2 + number % 8}", 0)
            made.append(socket.create_connection(("127.0.0.1", broker.port), 10, source))
        yield made
    finally:
        for one in made:
            one.close()


def frame(request: object, version: int) -> bytes:
    header = RequestHeader(type(request).API_KEY, version, 1, "c")  # type: ignore[attr-defined]
    body = encode_request_header(header) + encode(request, version)
    return struct.pack(">i", len(body)) + body


def test_idle_connections_cost_little(broker: BrokerProcess) -> None:
    growth = Growth(broker)
    with crowd(broker, CONNECTIONS) as clients:
        for client in clients:  # Each has spoken once.
            client.sendall(frame(metadata.Request(topics=[]), 9))
        for client in clients:
            assert client.recv(65536)
        assert growth.peak_mb < 4 + SLACK_MB * CONNECTIONS / 10_000
        assert bystander(broker) < ANSWER_SECONDS_MAX
        produce_with_librdkafka(broker.bootstrap, "bystander", [b"x"])


def test_half_frames_are_bounded_together(broker: BrokerProcess) -> None:
    growth = Growth(broker)
    half = struct.pack(">i", 120_000) + bytes(100_000)
    with crowd(broker, CONNECTIONS) as clients:
        for client in clients:
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.send(half)  # What it does not read waits in the kernel's buffers.
        assert bystander(broker) < ANSWER_SECONDS_MAX
        assert growth.peak_mb < REQUEST_BYTES_MAX / MB + SLACK_MB


def test_claims_of_large_frames_take_nothing_from_others(broker: BrokerProcess) -> None:
    growth = Growth(broker)
    with crowd(broker, 100) as clients:
        for client in clients:
            client.sendall(struct.pack(">i", 30 * MB) + b"\0\0\0\7\0\0\0\1")
        assert bystander(broker) < ANSWER_SECONDS_MAX
        large = os.urandom(900_000)  # More than a frame that fits the shared buffer.
        produce_with_librdkafka(broker.bootstrap, "bystander", [large])
        assert growth.peak_mb < REQUEST_BYTES_MAX / MB + SLACK_MB


def test_huge_requests_are_bounded_together(broker: BrokerProcess) -> None:
    growth = Growth(broker)
    body = bytes(20 * MB)
    huge = frame(
        produce.Request(
            acks=1,
            timeout_ms=1000,
            topic_data=[
                produce.TopicProduceData(
                    name="bystander", partition_data=[produce.PartitionProduceData(0, body)]
                )
            ],
        ),
        9,
    )
    with crowd(broker, 16) as clients:
        sent = [0] * len(clients)
        for client in clients:
            client.setblocking(False)
        deadline = time.monotonic() + 20
        while any(count < len(huge) for count in sent) and time.monotonic() < deadline:
            for index, client in enumerate(clients):
                with contextlib.suppress(BlockingIOError):
                    if sent[index] < len(huge):
                        sent[index] += client.send(huge[sent[index] : sent[index] + MB])
        assert all(count == len(huge) for count in sent), "some were never read"
        for client in clients:
            client.settimeout(10)
            assert len(client.recv(4)) == 4, "refused, but answered"
    assert bystander(broker) < ANSWER_SECONDS_MAX
    assert growth.peak_mb < REQUEST_BYTES_MAX / MB + SLACK_MB


def test_slow_readers_are_not_buffered_for(broker: BrokerProcess) -> None:
    create(broker.bootstrap, "wide", max_message_bytes=str(20 * MB))
    for _ in range(6):
        produce_with_librdkafka(
            broker.bootstrap, "wide", [os.urandom(9 * MB)], message_max_bytes=20 * MB
        )
    growth = Growth(broker)
    wanted = frame(
        fetch.Request(
            max_wait_ms=100,
            min_bytes=1,
            topics=[
                fetch.FetchTopic(
                    topic="wide",
                    partitions=[fetch.FetchPartition(fetch_offset=0, partition_max_bytes=50 * MB)],
                )
            ],
        ),
        11,
    )
    with crowd(broker, 100) as clients:
        for client in clients:
            client.sendall(wanted * 10)
            client.recv(1000)
        time.sleep(0.5)
        assert bystander(broker) < ANSWER_SECONDS_MAX
        assert growth.peak_mb < SLACK_MB


def test_a_flood_of_requests_without_reading_is_muted(broker: BrokerProcess) -> None:
    growth = Growth(broker)
    many = frame(metadata.Request(topics=None), 9) * 1000
    with crowd(broker, 20) as clients:
        for client in clients:
            client.setblocking(False)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            for client in clients:
                with contextlib.suppress(BlockingIOError):
                    client.send(many)
        assert bystander(broker) < ANSWER_SECONDS_MAX
        assert growth.peak_mb < SLACK_MB


def test_a_large_garbage_frame_does_not_stall_others(broker: BrokerProcess) -> None:
    growth = Growth(broker)
    header = struct.pack(">hhihB", 18, 3, 1, -1, 0)
    tags = b"\xff\xff\xff\x7f" + b"\1\0" * (5 * MB)  # Five million tagged fields.
    arrays = struct.pack(">hhihBI", 3, 9, 1, -1, 0, 0) + b"\2\1" * (5 * MB)
    for body in (header + b"\1\1" + tags, arrays):
        with socket.create_connection(("127.0.0.1", broker.port), 10) as client:
            client.sendall(struct.pack(">i", len(body)) + body)
            assert bystander(broker) < ANSWER_SECONDS_MAX
    assert growth.peak_mb < REQUEST_BYTES_MAX / MB + SLACK_MB


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=["gzip", "snappy", "lz4", "zstd"])
def test_a_decompression_bomb_is_refused_within_bounds(broker: BrokerProcess, codec: int) -> None:
    create(broker.bootstrap, f"bomb-{codec}", cleanup_policy="compact")
    bomb = build_batch([Record(0, 1, b"k", bytes(300 * MB))], codec=codec)
    request = produce.Request(
        acks=1,
        timeout_ms=5000,
        topic_data=[
            produce.TopicProduceData(
                name=f"bomb-{codec}", partition_data=[produce.PartitionProduceData(0, bomb)]
            )
        ],
    )
    growth = Growth(broker)
    with Connection(broker.bootstrap) as connection:
        answer = connection.ask(request, 9)
    assert answer.responses[0].partition_responses[0].error_code != 0
    assert growth.peak_mb < 2 * DECOMPRESSED_BYTES_MAX / MB + SLACK_MB
    assert bystander(broker) < ANSWER_SECONDS_MAX
    assert consume(broker.bootstrap, "bystander", 0) == []
