"""The `ottla` command as a person or a script uses it, against a broker that speaks Kafka."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.client.blocking import Client
from tests.conformance.broker_process import BrokerProcess

Run = Callable[..., subprocess.CompletedProcess[bytes]]
OTTLA = [sys.executable, "-m", "ottla.cli.main"]
SECONDS_MAX = 30


@pytest.fixture
def environment(bootstrap: str) -> dict[str, str]:
    return {**os.environ, "OTTLA_BOOTSTRAP": bootstrap}


@pytest.fixture
def ottla(environment: dict[str, str]) -> Run:
    def run(
        *arguments: str, stdin: bytes = b"", status: int = 0
    ) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [*OTTLA, *arguments],
            input=stdin,
            capture_output=True,
            env=environment,
            timeout=SECONDS_MAX,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done

    return run


@pytest.fixture
def make(bootstrap: str) -> Callable[..., None]:
    """Makes a topic without the cost of a process."""

    def create(name: str, partitions: int = 1) -> None:
        with Client(bootstrap) as client:
            client.run(client.admin.create_topic(name, partitions=partitions))

    return create


@pytest.fixture
def json_of(ottla: Run) -> Callable[..., Any]:
    return lambda *arguments: json.loads(ottla(*arguments, "--json").stdout)


@pytest.fixture
def records_of(ottla: Run) -> Callable[..., list[dict[str, Any]]]:
    """What a topic holds, as `ottla consume --json` tells it."""

    def read(topic: str, *options: str) -> list[dict[str, Any]]:
        done = ottla("consume", topic, "--to-end", "--json", *options)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return read


def test_a_topic_is_made_described_changed_and_deleted(
    ottla: Run, json_of: Callable[..., Any], topic: str
) -> None:
    made = json_of("topics", "create", topic, "-p", "2", "-c", "retention.ms=123456")
    assert (made["partitions"], made["replication_factor"], made["created"]) == (2, 1, True)
    (described,) = json_of("topics", "describe", topic)
    assert described["configs"]["retention.ms"] == "123456"
    assert [row["partition"] for row in described["partitions"]] == [0, 1]
    assert described["id"] == made["id"]
    assert topic in [item["topic"] for item in json_of("topics", "list")]

    ottla("topics", "alter", topic, "-p", "3", "-c", "segment.ms=99999999")
    ottla("topics", "alter", topic, "--delete-config", "retention.ms")
    (described,) = json_of("topics", "describe", topic)
    assert described["configs"]["segment.ms"] == "99999999"
    assert "retention.ms" not in described["configs"]
    assert len(described["partitions"]) == 3

    ottla("topics", "delete", topic)
    assert topic not in [item["topic"] for item in json_of("topics", "list")]


def test_tables_show_what_json_tells(make: Callable[..., None], ottla: Run, topic: str) -> None:
    make(topic, 2)
    assert topic in ottla("topics", "list").stdout.decode()
    shown = ottla("topics", "describe", topic).stdout.decode()
    assert "End offset" in shown
    assert "2 partitions" in shown


def test_a_topic_that_exists_is_refused_unless_that_is_fine(ottla: Run, topic: str) -> None:
    ottla("topics", "create", topic)
    assert b"exists" in ottla("topics", "create", topic, status=1).stderr
    ottla("topics", "create", topic, "--if-not-exists")


def test_validating_a_topic_makes_none(ottla: Run, json_of: Callable[..., Any], topic: str) -> None:
    assert b"could be made" in ottla("topics", "create", topic, "--validate-only").stdout
    assert topic not in [item["topic"] for item in json_of("topics", "list")]


def test_values_keys_and_headers_are_written_and_read(
    make: Callable[..., None],
    ottla: Run,
    records_of: Callable[..., list[dict[str, Any]]],
    topic: str,
) -> None:
    make(topic)
    ottla("produce", topic, "--key", "k", "-H", "a=1", "-H", "b=two=2", "first", "second")
    ottla("produce", topic, "--key", "k", "--tombstone")
    first, second, last = records_of(topic)
    assert (first["key"], first["value"], second["value"]) == ("k", "first", "second")
    assert first["headers"] == [{"name": "a", "value": "1"}, {"name": "b", "value": "two=2"}]
    assert (last["key"], last["value"]) == ("k", None)
    assert abs(first["timestamp"] / 1000 - time.time()) < 60


def test_lines_of_standard_input_come_back_byte_for_byte_in_every_compression(
    make: Callable[..., None], ottla: Run, topic: str
) -> None:
    make(topic)
    lines = b"".join(b"line %d \xff\x00 \xc3\xa9\n" % number for number in range(5000))
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    for codec in codecs:
        told = ottla("produce", topic, "-z", codec, stdin=lines).stdout
        assert told.startswith(b"5,000 records written")
    assert ottla("consume", topic, "--to-end", "--format", "raw").stdout == lines * len(codecs)
    assert ottla("consume", topic, "--to-end").stdout == lines * len(codecs)


def test_keys_in_lines_choose_the_partition_that_other_clients_choose(
    make: Callable[..., None],
    ottla: Run,
    records_of: Callable[..., list[dict[str, Any]]],
    topic: str,
    bootstrap: str,
) -> None:
    from confluent_kafka import Producer

    make(topic, 7)
    lines = "".join(f"key{number}\tvalue{number}\n" for number in range(50)).encode()
    ottla("produce", topic, "--key-separator", "\\t", stdin=lines)
    other = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    for number in range(50):
        other.produce(topic, b"other", f"key{number}".encode())
    assert other.flush(SECONDS_MAX) == 0
    places: dict[str, set[int]] = {}
    for record in records_of(topic):
        places.setdefault(record["key"], set()).add(record["partition"])
    assert len(places) == 50
    assert all(len(partitions) == 1 for partitions in places.values())


def test_files_are_written_by_line_or_whole(
    make: Callable[..., None],
    ottla: Run,
    records_of: Callable[..., list[dict[str, Any]]],
    topic: str,
    tmp_path: Path,
) -> None:
    make(topic)
    text, picture = tmp_path / "a.txt", tmp_path / "b.bin"
    text.write_bytes(b"one\r\ntwo")
    picture.write_bytes(b"\x89PNG\n\n\xff")
    ottla("produce", topic, "--file", str(text))
    ottla("produce", topic, "--whole", "--file", str(picture))
    assert [record.get("value") for record in records_of(topic)] == ["one", "two", None]
    assert ottla(
        "consume", topic, "-o", "2", "-e", "--format", "raw", "--delimiter", ""
    ).stdout == (picture.read_bytes())


def test_json_goes_from_one_topic_to_another_unchanged(
    make: Callable[..., None],
    ottla: Run,
    records_of: Callable[..., list[dict[str, Any]]],
    topic: str,
    other_topic: str,
) -> None:
    make(topic)
    make(other_topic)
    ottla("produce", topic, "--key", "k", "-H", "h=v", "text")
    ottla("produce", topic, stdin=b"\xff\xfe\n")
    ottla("produce", topic, "--key", "k", "--tombstone")
    lines = ottla("consume", topic, "-e", "--json").stdout
    ottla("produce", other_topic, "--format", "json", stdin=lines)
    kept = ["timestamp", "key", "value", "value_base64", "headers"]
    before, after = records_of(topic), records_of(other_topic)
    assert [[record.get(name) for name in kept] for record in before] == [
        [record.get(name) for name in kept] for record in after
    ]


def test_every_kind_of_acknowledgement_writes(
    make: Callable[..., None], ottla: Run, topic: str
) -> None:
    make(topic)
    for acks in ("0", "1", "all"):
        ottla("produce", topic, "--acks", acks, acks)
    done = ottla("consume", topic, "--from-beginning", "-n", "3")
    assert done.stdout == b"0\n1\nall\n"


def test_reading_begins_where_it_is_told_to(
    make: Callable[..., None], ottla: Run, topic: str
) -> None:
    make(topic)
    ottla("produce", topic, *"abcde")
    assert ottla("consume", topic, "-o", "3", "-e").stdout == b"d\ne\n"
    assert ottla("consume", topic, "-o", "-2", "-e").stdout == b"d\ne\n"
    assert ottla("consume", topic, "-p", "0", "-o", "1", "-n", "1").stdout == b"b\n"
    assert ottla("consume", topic, "-o", "latest", "-e").stdout == b""
    assert ottla("consume", topic, "--from-time", "-1h", "-e").stdout == b"a\nb\nc\nd\ne\n"


def test_reading_begins_at_a_time(
    make: Callable[..., None],
    ottla: Run,
    records_of: Callable[..., list[dict[str, Any]]],
    topic: str,
) -> None:
    make(topic)
    now = int(time.time() * 1000)
    for ago in (1_800_000, 1_200_000, 600_000):
        line = json.dumps({"value": str(ago), "timestamp": now - ago}).encode()
        ottla("produce", topic, "--format", "json", stdin=line)
    moment = str(now - 1_200_000)
    assert [record["value"] for record in records_of(topic, "--from-time", moment)] == [
        "1200000",
        "600000",
    ]
    assert [record["value"] for record in records_of(topic, "--from-time", "-15m")] == ["600000"]
    assert records_of(topic, "--from-time", str(now + 60_000)) == []


def test_all_that_can_be_shown_is_shown(make: Callable[..., None], ottla: Run, topic: str) -> None:
    make(topic)
    ottla("produce", topic, "--key", "k", "-H", "h=v", "value")
    shown = ottla("consume", topic, "-e", "--all", "--separator", "|").stdout.decode()
    moment, place, headers, key, value = shown.rstrip("\n").split("|")
    assert (place, headers, key, value) == ("0:0", "h=v", "k", "value")
    assert moment.startswith(time.strftime("20"))


def test_following_shows_what_comes_and_ends_cleanly_with_a_count(
    make: Callable[..., None], ottla: Run, environment: dict[str, str], topic: str
) -> None:
    make(topic)
    ottla("produce", topic, "old")
    following = subprocess.Popen(
        [*OTTLA, "consume", topic, "--from-beginning"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert following.stdout is not None
    try:
        assert following.stdout.readline() == b"old\n"
        ottla("produce", topic, "new")
        assert following.stdout.readline() == b"new\n"
        following.send_signal(signal.SIGINT)
        _, told = following.communicate(timeout=10)
    finally:
        following.kill()
    assert told == b"2 records read.\n"
    assert following.returncode == 0


def test_standard_input_is_sent_as_it_comes(
    make: Callable[..., None], ottla: Run, environment: dict[str, str], topic: str
) -> None:
    make(topic)
    writing = subprocess.Popen(
        [*OTTLA, "produce", topic],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert writing.stdin is not None
    try:
        writing.stdin.write(b"now\n")
        writing.stdin.flush()
        assert ottla("consume", topic, "--from-beginning", "-n", "1").stdout == b"now\n"
        told, _ = writing.communicate(b"later", timeout=10)
    finally:
        writing.kill()
    assert told.startswith(b"2 records written")


def test_a_reader_that_has_seen_enough_ends_it_quietly(
    make: Callable[..., None], ottla: Run, environment: dict[str, str], topic: str
) -> None:
    make(topic)
    ottla("produce", topic, stdin=b"x" * 100 + b"\n" + b"y\n" * 200_000)
    reading = subprocess.Popen(
        [*OTTLA, "consume", topic, "--from-beginning"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert reading.stdout is not None
    reading.stdout.read(10)
    reading.stdout.close()
    assert reading.wait(10) == 0
    assert reading.stderr is not None
    assert reading.stderr.read() == b""
    reading.stderr.close()


def test_control_characters_cannot_reach_a_terminal(
    make: Callable[..., None], ottla: Run, environment: dict[str, str], topic: str
) -> None:
    make(topic)
    ottla(
        "produce", topic, "--key", "\x1b]0;title\x07", "--whole", stdin=b"\x1b[2Jred\xff\nx\xc3\xa9"
    )
    terminal, child_side = pty.openpty()
    subprocess.run(
        [*OTTLA, "consume", topic, "-e", "--keys"],
        stdout=child_side,
        stderr=subprocess.DEVNULL,
        env=environment,
        timeout=SECONDS_MAX,
        check=True,
    )
    os.close(child_side)
    shown = os.read(terminal, 10_000)
    os.close(terminal)
    assert shown == b"\\x1b]0;title\\x07\t\\x1b[2Jred\\xff\\nx\xc3\xa9\r\n"


def test_aborted_transactions_are_hidden_from_those_who_ask_so(
    make: Callable[..., None], ottla: Run, bootstrap: str, broker: BrokerProcess, topic: str
) -> None:
    if broker.flavour.name != "kafka":
        pytest.skip("transactions are not served yet")
    from confluent_kafka import Producer

    make(topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS_MAX)
    for value, ends in ((b"gone", producer.abort_transaction), (b"kept", None)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(SECONDS_MAX)
        (ends or producer.commit_transaction)(SECONDS_MAX)
    committed = ottla("consume", topic, "-e", "--isolation", "read_committed")
    assert committed.stdout == b"kept\n"
    assert ottla("consume", topic, "-e").stdout == b"gone\nkept\n"


def test_configs_are_shown_and_changed(
    make: Callable[..., None], ottla: Run, json_of: Callable[..., Any], topic: str
) -> None:
    make(topic)
    ottla("configs", "alter", "topic", topic, "-s", "retention.ms=5000")
    (found,) = json_of("configs", "describe", "topic", topic, "retention.ms")
    assert (found["value"], found["source"]) == ("5000", "topic")
    ottla("configs", "alter", "topic", topic, "--append", "cleanup.policy=compact")
    (found,) = json_of("configs", "describe", "topic", topic, "cleanup.policy")
    assert found["value"] == "delete,compact"
    ottla("configs", "alter", "topic", topic, "--subtract", "cleanup.policy=compact")
    ottla("configs", "alter", "topic", topic, "--unset", "retention.ms")
    (found,) = json_of("configs", "describe", "topic", topic, "retention.ms")
    assert found["source"] != "topic"
    everything = json_of("configs", "describe", "broker", "1", "--all")
    assert {"log.dirs", "num.partitions"} <= {item["name"] for item in everything}
    (found,) = json_of("configs", "describe", "topic", topic, "retention.ms", "-d")
    assert len(found["documentation"]) > 20


def test_a_config_that_cannot_be_is_refused_in_a_sentence(
    make: Callable[..., None], ottla: Run, topic: str
) -> None:
    make(topic)
    refused = ottla("configs", "alter", "topic", topic, "-s", "retention.ms=soon", status=1)
    assert b"retention.ms" in refused.stderr
    assert refused.stderr.count(b"\n") == 1
    refused = ottla("topics", "create", f"{topic}-x", "-c", "no.such.config=1", status=1)
    assert b"no.such.config" in refused.stderr


def test_the_cluster_is_shown(
    make: Callable[..., None], ottla: Run, json_of: Callable[..., Any], topic: str
) -> None:
    make(topic, 3)
    seen = json_of("cluster")
    assert [item["id"] for item in seen["brokers"]] == [1]
    assert seen["controller"] == 1
    assert seen["partitions"] >= 3
    assert seen["features"]["metadata.version"] == 30
    assert seen["brokers"][0]["log_dirs"][0]["state"] == "online"
    assert seen["brokers"][0]["log_dirs"][0]["partitions"] >= 3
    assert seen["cluster_id"].encode() in ottla("cluster").stdout


def test_brokers_are_listed_and_one_that_stands_alone_cannot_be_emptied(
    make: Callable[..., None],
    ottla: Run,
    json_of: Callable[..., Any],
    broker: BrokerProcess,
    topic: str,
) -> None:
    make(topic, 3)
    (seen,) = json_of("brokers", "list")
    assert (seen["id"], seen["state"], seen["controller"]) == (1, "running", True)
    assert (seen["leaders"], seen["replicas_out_of_sync"]) == (seen["replicas"], 0)
    assert seen["replicas"] >= 3
    assert f"127.0.0.1:{broker.port}".encode() in ottla("brokers").stdout
    assert b"no broker 9" in ottla("brokers", "drain", "9", status=1).stderr
    assert b"is running" in ottla("brokers", "unregister", "1", "--yes", status=1).stderr
    if broker.flavour.name == "kafka":
        assert b"no Ottla" in ottla("brokers", "drain", "1", status=1).stderr
        return
    told = ottla("brokers", "drain", "1", "--wait", status=1).stderr
    assert b"they stay until one is added" in told
    ottla("brokers", "undrain", "1")


def test_the_files_of_the_broker_are_shown(
    make: Callable[..., None],
    ottla: Run,
    broker: BrokerProcess,
    topic: str,
    json_of: Callable[..., Any],
) -> None:
    make(topic)
    ottla("produce", topic, "--key", "k", "-z", "zstd", "one", "two")
    segment = broker.data_directory / f"{topic}-0" / "00000000000000000000.log"
    (batch,) = [json_of("log", "dump", str(segment))]
    assert [record["value"] for record in batch["records"]] == ["one", "two"]
    assert (batch["compression"], batch["valid"], batch["base_offset"]) == ("zstd", True, 0)
    assert b"offsets 0 to 1, 2 records, at byte 0" in ottla("log", "dump", str(segment)).stdout
    metadata = broker.data_directory / "__cluster_metadata-0" / "00000000000000000000.log"
    told = ottla("log", "dump", str(metadata)).stdout.decode()
    assert f"Topic  name={topic}  topic_id=" in told
    assert "LEADER_CHANGE" in told


def test_what_cannot_be_is_told_in_one_sentence(
    make: Callable[..., None], ottla: Run, topic: str
) -> None:
    make(topic, 2)
    for status, words, arguments in (
        (1, "nothing listens there", ["topics", "list", "-b", "127.0.0.1:1"]),
        (
            1,
            "cannot connect to no.such.host.invalid:9092",
            ["cluster", "-b", "no.such.host.invalid"],
        ),
        (1, f"did you mean {topic!r}", ["consume", f"{topic}x", "-e"]),
        (1, f"did you mean {topic!r}", ["topics", "describe", topic[:-1]]),
        (1, "no topic", ["topics", "delete", f"{topic}x"]),
        (1, "out of range", ["consume", topic, "-o", "77"]),
        (1, "has no partition 5: it has 2", ["consume", topic, "-p", "5"]),
        (1, "has no partition 5: it has 2", ["produce", topic, "-p", "5", "x"]),
        (2, "is not a time", ["consume", topic, "--from-time", "yesterday"]),
        (2, "nothing to change", ["topics", "alter", topic]),
    ):
        done = ottla(*arguments, status=status)
        assert words in done.stderr.decode(), (arguments, done.stderr)
        assert done.stderr.decode().startswith("ottla: ")
        assert done.stderr.count(b"\n") == 1
        assert done.stdout == b""


def test_a_line_that_is_no_record_stops_after_those_before_it(
    make: Callable[..., None], ottla: Run, topic: str
) -> None:
    make(topic)
    done = ottla("produce", topic, "-K", ":", stdin=b"a:1\nb\nc:3\n", status=2)
    assert b"line 2 has no key" in done.stderr
    assert done.stdout.startswith(b"1 record written")
    assert ottla("consume", topic, "-e", "--keys", "--separator", "=").stdout == b"a=1\n"


@pytest.mark.parametrize(
    "command",
    ["", "topics create", "consume", "log dump"],
)
def test_help_comes_with_examples(ottla: Run, command: str) -> None:
    told = ottla(*command.split(), "--help").stdout.decode()
    assert "Usage: ottla" in told
    if command:
        assert "Examples:" in told


def test_configs_of_a_broker_that_does_not_run_are_refused_at_once(ottla: Run) -> None:
    refused = ottla("configs", "describe", "broker", "77", status=1)
    assert b"there is no broker 77 running; there are 1" in refused.stderr


def test_peek_says_that_there_are_no_dead_letters(ottla: Run, make: Callable[..., None]) -> None:
    make("quiet.dlq")
    assert b"quiet.dlq has no dead letters" in ottla("dlq", "peek", "quiet.dlq").stderr
