"""Real disks that fill up or fail: what is refused, what goes on, and what comes back by itself."""

import os
import time
from pathlib import Path

from confluent_kafka import KafkaError, Producer

from tests.conformance.broker_process import BrokerProcess
from tests.conformance.librdkafka import admin, consume, create, produce
from tests.process.conftest import NewBroker
from tests.process.disks import MB, fail, needs_root

RESERVE_MB = 8
PARTITIONS = 6


def error_of_one_produce(bootstrap: str, topic: str, value: bytes) -> KafkaError | None:
    """The first answer, without the retries in which librdkafka would hide it."""
    errors: list[KafkaError | None] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "retries": 0,
            "message.timeout.ms": 5000,
            "message.max.bytes": 4 * MB,
            "log_level": 0,
        }
    )
    producer.produce(topic, value, partition=0, on_delivery=lambda e, _: errors.append(e))
    producer.flush(10)
    return errors[0]


@needs_root
def test_a_full_disk_refuses_writes_and_recovers_by_itself(
    new_broker: NewBroker, small_disk: Path
) -> None:
    broker = new_broker(
        ottla_disk_reserve_bytes=str(RESERVE_MB * MB), log_segment_delete_delay_ms="500"
    )
    broker.data_directory = small_disk / "data"
    broker.settings["log.dirs"] = str(broker.data_directory)
    broker.start()
    create(broker.bootstrap, "filling", max_message_bytes=str(4 * MB))
    acknowledged = 0
    while (error := error_of_one_produce(broker.bootstrap, "filling", bytes(MB))) is None:
        acknowledged += 1
        assert acknowledged < 48, "a disk of 48 MB took more than 48 MB"
    assert acknowledged > 20, f"refused too early: {error}"
    assert error.name() == "KAFKA_STORAGE_ERROR", error
    free = os.statvfs(small_disk)
    assert free.f_bavail * free.f_frsize > MB, "the last reserve is gone"

    # Nothing is offline: what is there is served, and metadata still changes.
    assert len(consume(broker.bootstrap, "filling", acknowledged)) == acknowledged
    create(broker.bootstrap, "another")
    admin(broker.bootstrap).delete_topics(["filling"])["filling"].result(10)
    wait_until_writable(broker, "another")
    assert broker.is_alive
    broker.kill()
    broker.start()
    assert consume(broker.bootstrap, "another", 1)[0].value() == b"after"


def wait_until_writable(broker: BrokerProcess, topic: str) -> None:
    deadline = time.monotonic() + 20
    while error_of_one_produce(broker.bootstrap, topic, b"after") is not None:
        assert time.monotonic() < deadline, "it never recovered"
        time.sleep(0.5)


@needs_root
def test_one_failed_directory_takes_only_its_own_partitions_offline(
    new_broker: NewBroker, doomed_disk: Path
) -> None:
    broker = new_broker()
    broker.settings["log.dirs"] = f"{broker.data_directory},{doomed_disk / 'data'}"
    broker.start()
    create(broker.bootstrap, "spread", PARTITIONS)
    everywhere = set(range(PARTITIONS))
    assert {p for p in everywhere if is_writable(broker, p)} == everywhere
    held = {int(path.name.rpartition("-")[2]) for path in doomed_disk.glob("data/spread-*")}
    assert 0 < len(held) < PARTITIONS, "the partitions were not spread over both directories"

    fail(doomed_disk)
    assert {p for p in everywhere if is_writable(broker, p)} == everywhere - held
    assert {p for p in everywhere if is_writable(broker, p)} == everywhere - held
    assert broker.is_alive, broker.log_tail()
    one = min(everywhere - held)
    assert len(consume(broker.bootstrap, "spread", 3, partition=one)) == 3
    create(broker.bootstrap, "later", 4)
    produce(broker.bootstrap, "later", [b"to a directory that works"])


@needs_root
def test_a_broker_ends_when_the_directory_of_its_metadata_fails(
    new_broker: NewBroker, doomed_disk: Path
) -> None:
    broker = new_broker()
    broker.data_directory = doomed_disk / "data"
    broker.settings["log.dirs"] = str(broker.data_directory)
    broker.start()
    create(broker.bootstrap, "spread", PARTITIONS)
    fail(doomed_disk)
    is_writable(broker, 0)
    deadline = time.monotonic() + 20
    while broker.is_alive:
        assert time.monotonic() < deadline, "it goes on without a directory"
        time.sleep(0.1)
    assert broker.stop() != 0


def is_writable(broker: BrokerProcess, partition: int) -> bool:
    """Answers come at once, however many partitions are offline."""
    errors: list[KafkaError | None] = []
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "retries": 0,
            "message.timeout.ms": 3000,
            "log_level": 0,
        }
    )
    producer.produce("spread", b"x", partition=partition, on_delivery=lambda e, _: errors.append(e))
    producer.flush(5)
    return errors[0] is None
