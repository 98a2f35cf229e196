"""Apache Kafka's own DumpLogSegments reads the files that our storage writes."""

import re
from pathlib import Path

import pytest

from ottla.env.disk import real_disk
from ottla.model.types import TopicPartition, WallTime
from ottla.records.batch import Batch
from ottla.records.record import Record, build_batch
from ottla.storage.config import LogConfig
from ottla.storage.existing_log import open_log
from ottla.storage.log import Log
from tests.conformance.apache_kafka import run_class
from tests.unit.storage.making import NOW, make_batch, make_marker, put

TOOL = "org.apache.kafka.tools.DumpLogSegments"
CONFIG = LogConfig(segment_bytes=6000, index_interval_bytes=500)
BATCHES = 60
COMPLAINTS = re.compile(
    r"mismatch|not found|corrupt|invalid|Index timestamp|are not|Found|exception", re.IGNORECASE
)


def write_log(directory: Path) -> Log:
    """All codecs, keys and headers, three leaders, an aborted and a committed transaction."""
    directory.mkdir()
    name = TopicPartition("t", 0)
    log = open_log(real_disk(), str(directory), name, CONFIG, clean=True, now=NOW)
    for number in range(BATCHES):
        records = [
            Record(
                i,
                NOW + number * 10 - i,
                b"key%d" % number,
                b"value%d-%d " % (number, i) * 9,
                (("header", b"h%d" % i),),
            )
            for i in range(3)
        ]
        data = build_batch(
            records, codec=number % 5, producer_id=4, producer_epoch=0, base_sequence=number * 3
        )
        put(log, Batch(data), leader_epoch=number // 20)
    for is_abort, sequence in ((True, 0), (False, 2)):
        batch = make_batch(2, producer_id=9, sequence=sequence, is_transactional=True)
        put(log, batch, leader_epoch=2)
        log.stage(make_marker(9, is_abort=is_abort), 2, is_client=False)
        log.flush(WallTime(NOW))
    return log


def dump(directory: Path, *options: str, suffixes: tuple[str, ...]) -> str:
    files = sorted(str(path) for path in directory.iterdir() if path.suffix in suffixes)
    assert files
    done = run_class(TOOL, "--files", ",".join(files), *options)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dump") / "t-0"
    write_log(directory).close()
    return directory


def test_every_record_is_read_with_its_offset_key_and_value(written: Path) -> None:
    printed = dump(written, "--deep-iteration", "--print-data-log", suffixes=(".log",))
    assert not COMPLAINTS.search(printed)
    records = re.findall(r"offset: (\d+) .*? key: (\S+) payload: (.*)", printed)
    expected = [
        (str(number * 3 + i), f"key{number}", f"value{number}-{i} " * 9)
        for number in range(BATCHES)
        for i in range(3)
    ]
    assert records == expected
    assert set(re.findall(r"compresscodec: (\w+)", printed)) == {
        "none",
        "gzip",
        "snappy",
        "lz4",
        "zstd",
    }
    assert len(re.findall(r"isvalid: true", printed)) == BATCHES + 4
    assert re.findall(r"endTxnMarker: (\w+)", printed) == ["ABORT", "COMMIT"]


def test_the_indexes_agree_with_the_log(written: Path) -> None:
    entries = dump(written, suffixes=(".index", ".timeindex"))
    assert not COMPLAINTS.search(entries)
    assert len(re.findall(r"^offset: \d+ position: \d+", entries, re.MULTILINE)) > 10
    assert len(re.findall(r"^timestamp: \d+ offset: \d+", entries, re.MULTILINE)) > 10
    sane = dump(written, "--index-sanity-check", suffixes=(".index", ".timeindex"))
    assert sane.count("passed sanity check") == len(list(written.glob("*.*index"))) - 1
    verified = dump(written, "--verify-index-only", suffixes=(".index", ".timeindex"))
    assert not COMPLAINTS.search(verified)


def test_the_tool_would_notice_a_wrong_index(written: Path, tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    directory.mkdir()
    for path in written.iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    index = next(iter(sorted(directory.glob("*.index"))))
    data = bytearray(index.read_bytes())
    data[3] += 1
    index.write_bytes(data)
    assert COMPLAINTS.search(dump(directory, suffixes=(".index",)))


def test_producers_and_aborted_transactions_are_read(written: Path) -> None:
    printed = dump(written, suffixes=(".snapshot", ".txnindex"))
    end = BATCHES * 3
    assert (
        f"version: 0 producerId: 9 firstOffset: {end} lastOffset: {end + 2} "
        f"lastStableOffset: {end + 3}" in printed
    )
    producers = re.findall(
        r"producerId: (\d+) producerEpoch: (\d+) .*?lastSequence: (\d+) lastOffset: (\d+)", printed
    )
    assert ("4", "0", str(end - 1), str(end - 1)) in producers
    assert ("9", "0", "3", str(end + 4)) in producers


def test_what_a_kill_left_is_read_after_our_recovery(tmp_path: Path) -> None:
    directory = tmp_path / "t-0"
    log = write_log(directory)
    end_offset = log.end_offset
    log.abandon()
    with (directory / log.segments[-1].log_path.rpartition("/")[2]).open("ab") as file:
        file.write(b"torn")
    again = open_log(real_disk(), str(directory), log.topic_partition, CONFIG, clean=False, now=NOW)
    assert again.end_offset == end_offset
    again.close()
    printed = dump(
        directory, "--deep-iteration", suffixes=(".log", ".index", ".timeindex", ".txnindex")
    )
    assert not COMPLAINTS.search(printed)
    assert f"lastOffset: {end_offset - 1} " in printed
