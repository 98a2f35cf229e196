"""A broker whose descriptors are used up serves those who are connected, and gives up no disk."""

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla.protocol.messages import create_topics, delete_topics, fetch, metadata, produce
from ottla.records.record import Record, build_batch
from tests.conformance.broker_process import BrokerProcess
from tests.conformance.librdkafka import create
from tests.conformance.raw import SILENT, Connection
from tests.process.conftest import NewBroker

SEGMENT_BYTES = 1 << 20
SPARE = 20
STORAGE_ERROR = 56

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="Descriptors are counted in /proc."
)


@pytest.fixture
def broker(new_broker: NewBroker) -> BrokerProcess:
    """With a topic of several segments, of which none but the last is open."""
    made = new_broker(
        log_segment_bytes=str(SEGMENT_BYTES),
        log_flush_offset_checkpoint_interval_ms="200",
        log_retention_check_interval_ms="200",
    ).start()
    create(made.bootstrap, "t")
    with Connection(made.bootstrap) as client:
        for _ in range(6):
            assert produced(client) == 0
    made.restart()
    return made


def produced(client: Connection) -> int:
    """The error code of a write; three of them fill more than a segment."""
    record = Record(0, int(time.time() * 1000), None, bytes(SEGMENT_BYTES * 2 // 5), ())
    data = produce.PartitionProduceData(0, build_batch([record]))
    topics = [produce.TopicProduceData("t", partition_data=[data])]
    answer = client.ask(produce.Request(acks=-1, timeout_ms=5000, topic_data=topics), 9)
    return int(answer.responses[0].partition_responses[0].error_code)


def fetched(client: Connection, offset: int = 0) -> tuple[int, bool]:
    """The error code, and whether there were records; the first ones are in a sealed segment."""
    part = fetch.FetchPartition(0, fetch_offset=offset, partition_max_bytes=SEGMENT_BYTES)
    topics = [fetch.FetchTopic("t", partitions=[part])]
    request = fetch.Request(max_wait_ms=1, min_bytes=1, max_bytes=SEGMENT_BYTES, topics=topics)
    answer = client.ask(request, 12).responses[0].partitions[0]
    return answer.error_code, bool(answer.records)


def delete(client: Connection, topic: str) -> None:
    answer = client.ask(delete_topics.Request(topic_names=[topic], timeout_ms=500), 5)
    assert not isinstance(answer, str), answer


def open_descriptors(broker: BrokerProcess) -> int:
    return len(os.listdir(f"/proc/{broker.pid}/fd"))


@contextmanager
def limited(broker: BrokerProcess, count: int) -> Iterator[None]:
    before = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, before)


@contextmanager
def idle_clients(broker: BrokerProcess, count: int) -> Iterator[None]:
    made = [socket.create_connection(("127.0.0.1", broker.port), 5) for _ in range(count)]
    try:
        yield
    finally:
        for one in made:
            one.close()


def check_unharmed(broker: BrokerProcess) -> None:
    assert broker.is_alive, broker.log_tail()
    assert "is offline" not in broker.log_file.read_text()
    with Connection(broker.bootstrap) as client:
        assert [produced(client) for _ in range(3)] == [0, 0, 0]
        assert fetched(client) == (0, True)
    assert broker.stop() == 0


def test_idle_connections_leave_descriptors_to_those_who_read_and_write(
    broker: BrokerProcess,
) -> None:
    with Connection(broker.bootstrap) as client:
        assert produced(client) == 0
        count = open_descriptors(broker) + SPARE
        with limited(broker, count), idle_clients(broker, 2 * SPARE):
            deadline = time.monotonic() + 10
            while open_descriptors(broker) < count - SPARE // 2:  # The listener leaves some free.
                assert time.monotonic() < deadline
                time.sleep(0.02)
            assert [produced(client) for _ in range(6)] == [0] * 6, "new segments are begun"
            assert fetched(client) == (0, True), "old ones are opened"
            topics = [create_topics.CreatableTopic("u", 2, 1)]
            created = client.ask(create_topics.Request(topics, 5000), 7)
            assert created.topics[0].error_code == 0
            with Connection(broker.bootstrap) as waiting:
                waiting.send_frame(b"")
                assert waiting.receive_frame(0.5) == SILENT, "it waits in the backlog"
        with Connection(broker.bootstrap) as later:
            assert later.ask(metadata.Request(topics=None), 12).topics
    check_unharmed(broker)


def test_broker_without_any_descriptor_refuses_writes_and_goes_on_when_there_are_some(
    broker: BrokerProcess,
) -> None:
    with Connection(broker.bootstrap) as client:
        assert produced(client) == 0
        assert fetched(client, offset=6) == (0, True)
        delete(client, "missing")  # A handler is imported when it is first needed.
        assert client.ask(metadata.Request(topics=None), 12).brokers
        with limited(broker, 3):  # Numbers that are in use for ever: the reserve does not help.
            codes = {produced(client) for _ in range(4)}
            assert codes <= {0, STORAGE_ERROR}
            assert STORAGE_ERROR in codes
            assert fetched(client) == (STORAGE_ERROR, False)
            delete(client, "t")
            time.sleep(1.5)  # Meanwhile checkpoints are tried, and retention.
            assert client.ask(metadata.Request(topics=None), 12).brokers
    create(broker.bootstrap, "t")
    check_unharmed(broker)
