"""Compacted topics as clients see them, and compacted files as Apache Kafka sees them."""

import re
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ottla.env.disk import real_disk
from ottla.records.batch import Batch
from ottla.records.cleaning import delete_horizon
from ottla.records.record import Record, read_records
from ottla.storage.existing_log import open_log
from tests.conformance.apache_kafka import ApacheKafka
from tests.conformance.broker_process import BrokerProcess, Flavour, Ottla
from tests.conformance.librdkafka import SECONDS_MAX, admin, consumer, create, producer
from tests.conformance.test_dump_log_segments import COMPLAINTS, CONFIG, dump, write_log
from tests.unit.storage.making import (
    NOW,
    clean_log,
    remove_deleted,
)

EAGER = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "100"}
TOPIC = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "50000",
    "min_cleanable_dirty_ratio": "0.01",
}
KEYS = 200
Values = dict[bytes, bytes | None]


@pytest.fixture
def eager(flavour: Flavour, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that cleans as soon as there is something to clean."""
    broker = BrokerProcess(flavour, tmp_path, EAGER)
    broker.start()
    yield broker
    broker.kill()


def load(bootstrap: str, topic: str, first: int, count: int, **config: object) -> Values:
    """Numbered values over a few keys, every tenth of them a tombstone; the last of each key."""
    sender = producer(bootstrap, enable_idempotence=True, batch_num_messages=50, **config)
    last: Values = {}
    for number in range(first, first + count):
        key = b"key%d" % (number * 7 % KEYS)
        value = None if number % 10 == 9 else b"%d %s" % (number, b"x" * 100)
        last[key] = value
        sender.produce(topic, value, key, partition=0, on_delivery=answered)
        sender.poll(0)
    assert sender.flush(SECONDS_MAX) == 0
    return last


def answered(error: object, _: Message) -> None:
    assert error is None, error


def read(bootstrap: str, topic: str, **config: object) -> list[Message]:
    """All from the beginning up to where the partition ends now."""
    reader = consumer(bootstrap, enable_partition_eof=True, **config)
    reader.assign([Position(topic, 0, OFFSET_BEGINNING)])
    found: list[Message] = []
    deadline = time.monotonic() + SECONDS_MAX
    try:
        while True:
            assert time.monotonic() < deadline, f"{len(found)} records and no end"
            message = reader.poll(0.2)
            if message is None:
                continue
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return found
            found.append(message)
    finally:
        reader.close()


def check_order(messages: list[Message]) -> None:
    offsets = [message.offset() for message in messages]
    assert offsets == sorted(set(offsets))
    numbers: dict[bytes, int] = {}
    for message in messages:
        if message.value() is not None:
            number = int(message.value().split()[0])
            assert number > numbers.get(message.key(), -1)
            numbers[message.key()] = number


def check(bootstrap: str, topic: str, expected: Values, **config: object) -> int:
    messages = read(bootstrap, topic, **config)
    check_order(messages)
    seen = {message.key(): message.value() for message in messages}
    assert {key: seen.get(key) for key in expected} == expected
    assert set(seen) <= set(expected)
    return len(messages)


def cleaned_to(broker: BrokerProcess, topic: str) -> int:
    path = broker.data_directory / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines() if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def wait_for_cleaning(broker: BrokerProcess, topic: str, offset: int) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while cleaned_to(broker, topic) < offset:
        assert time.monotonic() < deadline, f"not cleaned:\n{broker.log_tail()}"
        time.sleep(0.05)


@pytest.mark.timeout(120)
def test_whoever_reads_from_the_beginning_gets_the_last_value_of_every_key(
    eager: BrokerProcess,
) -> None:
    create(eager.bootstrap, "c", **TOPIC)
    expected = load(eager.bootstrap, "c", 0, 2000)
    stopping = threading.Event()
    failures: list[BaseException] = []

    def read_on() -> None:
        try:
            while not stopping.is_set():
                check_order(read(eager.bootstrap, "c"))
        except BaseException as failure:  # noqa: BLE001 - It is raised again below.
            failures.append(failure)

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
    for round_number, codec in enumerate(("none", "zstd", "lz4", "gzip"), 1):
        more = load(eager.bootstrap, "c", round_number * 2000, 2000, compression_type=codec)
        expected |= more
    wait_for_cleaning(eager, "c", 8000)
    stopping.set()
    for reader in readers:
        reader.join()
    assert not failures, failures
    count = check(eager.bootstrap, "c", expected)
    assert count < 3000
    eager.kill()
    eager.start()
    assert check(eager.bootstrap, "c", expected) <= count
    expected |= load(eager.bootstrap, "c", 10_000, 1000)
    check(eager.bootstrap, "c", expected)


@pytest.mark.timeout(120)
def test_tombstones_are_gone_after_their_retention(eager: BrokerProcess) -> None:
    create(eager.bootstrap, "d", delete_retention_ms="100", **TOPIC)
    expected = load(eager.bootstrap, "d", 0, 3000)
    assert None in expected.values()
    left = {key: value for key, value in expected.items() if value is not None}
    sender = producer(eager.bootstrap, batch_num_messages=10)
    deadline = time.monotonic() + 2 * SECONDS_MAX
    while True:
        found = {message.key(): message.value() for message in read(eager.bootstrap, "d")}
        if {key: value for key, value in found.items() if key in expected} == left:
            return
        assert time.monotonic() < deadline, "tombstones stay"
        # Only a log with something new is cleaned again.
        for _ in range(100):
            sender.produce("d", b"y" * 1000, b"other", partition=0)
        sender.flush(SECONDS_MAX)
        time.sleep(0.3)


def committed(bootstrap: str, group: str, names: list[Position]) -> list[Position]:
    """Kafka that has just started may not know yet that it coordinates the group."""
    member = consumer(bootstrap, group_id=group)
    deadline = time.monotonic() + SECONDS_MAX
    try:
        while True:
            try:
                return member.committed(names, SECONDS_MAX)
            except KafkaException as failure:
                if "oordinator" not in str(failure) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
    finally:
        member.close()


@pytest.mark.timeout(120)
def test_the_log_of_committed_offsets_stays_small(flavour: Flavour, tmp_path: Path) -> None:
    settings = {
        **EAGER,
        "log.cleaner.min.cleanable.ratio": "0.01",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.segment.bytes": "1048576",
    }
    broker = BrokerProcess(flavour, tmp_path, settings)
    broker.start()
    try:
        create(broker.bootstrap, "committed", 50)
        names = [Position("committed", partition) for partition in range(50)]
        member = consumer(broker.bootstrap, group_id="g")
        for offset in range(400):
            offsets = [Position(name.topic, name.partition, offset) for name in names]
            member.commit(offsets=offsets, asynchronous=False)
        wait_for_cleaning(broker, "__consumer_offsets", 10_000)
        member.close()
        size = sum(path.stat().st_size for path in broker.data_directory.glob("__con*/*.log"))
        assert size < 1024 * 1024
        broker.kill()
        broker.start()
        assert {each.offset for each in committed(broker.bootstrap, "g", names)} == {399}
    finally:
        broker.kill()


def transact(broker: BrokerProcess, topic: str, first: int, count: int, *, commit: bool) -> Values:
    sender = producer(broker.bootstrap, transactional_id=f"t{commit}", batch_num_messages=50)
    sender.init_transactions(SECONDS_MAX)
    sender.begin_transaction()
    last: Values = {}
    for number in range(first, first + count):
        key = b"key%d" % (number % KEYS)
        last[key] = b"%d transacted" % number
        sender.produce(topic, last[key], key, partition=0)
    sender.flush(SECONDS_MAX)
    if not commit:
        sender.abort_transaction(SECONDS_MAX)
        return {}
    sender.commit_transaction(SECONDS_MAX)
    return last


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kill", [False, True], ids=["clean", "kill"])
def test_a_compacted_log_moves_from_kafka_to_ottla_and_back(tmp_path: Path, kill: bool) -> None:
    kafka = ApacheKafka()
    broker = BrokerProcess(kafka, tmp_path, EAGER | {"log.cleaner.enable": "true"})

    def hand_over(flavour: Flavour) -> None:
        if kill:
            broker.kill()
        else:
            broker.stop()
        broker.flavour = flavour
        broker.start()

    def check_all() -> None:
        committed = {"isolation_level": "read_committed"}
        check(broker.bootstrap, "m", expected, **committed)

    try:
        broker.start()
        create(broker.bootstrap, "m", **TOPIC)
        expected = load(broker.bootstrap, "m", 0, 1000)
        expected |= transact(broker, "m", 1000, 100, commit=True)
        transact(broker, "m", 1100, 300, commit=False)
        expected |= load(broker.bootstrap, "m", 2000, 2000)
        wait_for_cleaning(broker, "m", 2000)
        transact(broker, "m", 4000, 300, commit=False)
        expected |= transact(broker, "m", 4300, 100, commit=True)
        check_all()
        before = cleaned_to(broker, "m")
        hand_over(Ottla())
        check_all()
        expected |= load(broker.bootstrap, "m", 5000, 3000, compression_type="snappy")
        wait_for_cleaning(broker, "m", before + 2500)
        check_all()
        before = cleaned_to(broker, "m")
        hand_over(kafka)
        check_all()
        assert cleaned_to(broker, "m") >= before
        expected |= load(broker.bootstrap, "m", 9000, 3000, compression_type="lz4")
        wait_for_cleaning(broker, "m", before + 2500)
        check_all()
        hand_over(Ottla())
        check_all()
    finally:
        broker.kill()


def test_kafka_reads_what_our_cleaner_leaves(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    log = write_log(directory)
    log.config = replace(CONFIG, is_compacted=True, segment_bytes=4000)
    log.roll(NOW)
    # Its keys come three times in a row: two of three records go.
    end_offset = clean_log(log)
    assert end_offset == log.end_offset
    clean_log(log, now=NOW + 1)
    remove_deleted(log, NOW + 10**9)
    log.close()
    printed = dump(
        directory,
        "--deep-iteration",
        "--print-data-log",
        suffixes=(".log", ".index", ".timeindex", ".txnindex", ".snapshot"),
    )
    assert not COMPLAINTS.search(printed)
    keys = re.findall(r"offset: (\d+) .*? key: (key\d+) payload", printed)
    assert keys == [(str(3 * n + 2), f"key{n}") for n in range(60)]
    assert set(re.findall(r"compresscodec: (\w+)", printed)) == {
        "none",
        "gzip",
        "snappy",
        "lz4",
        "zstd",
    }
    assert re.findall(r"endTxnMarker: (\w+)", printed) == ["ABORT", "COMMIT"]
    assert "deleteHorizonMs: OptionalLong[" in printed
    sane = dump(directory, "--index-sanity-check", suffixes=(".index", ".timeindex"))
    assert "passed sanity check" in sane
    again = open_log(real_disk(), str(directory), log.topic_partition, CONFIG, clean=True, now=NOW)
    assert again.end_offset == end_offset


Left = tuple[int, int, int, int, int, int, int, bool, list[Record]]


def left_in(directory: Path, end_offset: int) -> list[Left]:
    """Every batch below `end_offset`; of a delete horizon only whether it is set."""
    found: list[Left] = []
    for path in sorted(directory.glob("*.log")):
        data, position = path.read_bytes(), 0
        while position < len(data):
            batch = Batch.parse(data, position)
            position += batch.size
            assert batch.is_valid
            if batch.base_offset < end_offset:
                found.append(
                    (
                        batch.base_offset,
                        batch.last_offset,
                        batch.producer_id,
                        batch.producer_epoch,
                        batch.base_sequence,
                        batch.attributes,
                        batch.max_timestamp,
                        delete_horizon(batch) is not None,
                        list(read_records(batch, 10**6)),
                    )
                )
    return found


@pytest.mark.timeout(180)
def test_kafka_and_ottla_leave_the_same_of_the_same_log(tmp_path: Path) -> None:
    """The reference writes a log, with transactions; then each of us cleans a copy of it."""
    author = BrokerProcess(ApacheKafka(), tmp_path / "author", EAGER)
    left = {}
    try:
        author.start()
        create(author.bootstrap, "s", **TOPIC | {"min_cleanable_dirty_ratio": "1"})
        for first, codec in ((0, "none"), (2000, "zstd"), (4000, "gzip")):
            load(author.bootstrap, "s", first, 600, compression_type=codec)
            transact(author, "s", first + 700, 300, commit=False)
            transact(author, "s", first + 1000, 300, commit=True)
        load(author.bootstrap, "s", 8000, 600)
        assert cleaned_to(author, "s") == 0
        author.stop()
        for flavour in (ApacheKafka(), Ottla()):
            broker = BrokerProcess(flavour, tmp_path / flavour.name, EAGER)
            shutil.copytree(author.data_directory, broker.data_directory)
            broker.start()
            try:
                dirty = ConfigEntry("min.cleanable.dirty.ratio", "0.01")
                dirty.incremental_operation = AlterConfigOpType.SET
                topic = ConfigResource(ResourceType.TOPIC, "s", incremental_configs=[dirty])
                admin(broker.bootstrap).incremental_alter_configs([topic])[topic].result(30)
                wait_for_cleaning(broker, "s", 3500)
            finally:
                broker.stop()
            left[flavour.name] = left_in(broker.data_directory / "s-0", cleaned_to(broker, "s"))
    finally:
        author.kill()
    assert len(left["kafka"]) > 10
    assert any(horizon for *_, horizon, _ in left["kafka"])
    assert any(not records for *_, records in left["kafka"])
    assert left["ottla"] == left["kafka"]
