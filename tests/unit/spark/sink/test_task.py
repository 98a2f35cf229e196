import datetime as dt
import subprocess
import sys
from collections import defaultdict
from contextlib import closing

import pytest

from ottla.client.partitioner import partition_of_key
from ottla.spark.errors import SparkError
from ottla.spark.options import Access
from ottla.spark.sink import task as sink_task
from ottla.spark.sink.producer import SinkSettings
from ottla.spark.sink.task import SinkTask, write
from ottla.testing import Broker
from tests.unit.spark.sink_world import arrow, layout, values


def run(broker: Broker, batch: object, topic: str | None, **settings: int) -> int:
    task = SinkTask(Access(broker.bootstrap_servers), SinkSettings(**settings))
    with closing(task):
        return task.write([batch], layout(batch, topic))


def test_a_key_decides_the_partition_and_order_is_kept(broker: Broker) -> None:
    topic = broker.create_topic("keyed", 5)
    keys = [b"%d" % (number % 13) for number in range(500)]
    batch = arrow(key=keys, value=[b"%d" % number for number in range(500)])
    assert run(broker, batch, topic, batch_bytes_max=1000) == 500
    seen = defaultdict(list)
    for record in broker.records(topic):
        assert record.key is not None
        assert record.value is not None
        assert record.partition == partition_of_key(record.key, 5)
        seen[record.key].append(int(record.value))
    assert seen == {key: list(range(int(key), 500, 13)) for key in set(keys)}


def test_a_row_may_name_topic_partition_headers_and_time(broker: Broker) -> None:
    first, second = broker.create_topic("named-a", 2), broker.create_topic("named-b", 3)
    moment = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    batch = arrow(
        key=[b"k", None, b"l"],
        value=[b"1", b"2", None],
        topic=[first, second, first],
        partition=[1, 2, 0],
        headers=[[{"key": "h", "value": b"x"}], None, []],
        timestamp=[moment, None, moment],
    )
    assert run(broker, batch, None) == 3
    one, two = broker.records(first)
    (three,) = broker.records(second)
    assert (one.partition, one.key, one.value, one.headers) == (0, b"l", None, ())
    assert (two.partition, two.value, two.headers) == (1, b"1", (("h", b"x"),))
    assert two.timestamp_ms == int(moment.timestamp() * 1000)
    assert (three.partition, three.key, three.value) == (2, None, b"2")
    assert abs(three.timestamp_ms / 1000 - dt.datetime.now(dt.UTC).timestamp()) < 60


def test_an_option_goes_before_the_column(broker: Broker) -> None:
    topic = broker.create_topic("option", 1)
    assert run(broker, arrow(value=[b"a"], topic=["nowhere"]), topic) == 1
    assert values(broker, topic) == [b"a"]


def test_rows_without_keys_reach_every_partition(broker: Broker) -> None:
    topic = broker.create_topic("unkeyed", 3)
    batch = arrow(key=[None] * 3000, value=[b"%04d" % number for number in range(3000)])
    run(broker, batch, topic, batch_bytes_max=2000)
    records = broker.records(topic)
    assert sorted(record.value or b"" for record in records) == [b"%04d" % n for n in range(3000)]
    assert {record.partition for record in records} == {0, 1, 2}


def test_a_partition_that_does_not_exist_is_told(broker: Broker) -> None:
    topic = broker.create_topic("few", 2)
    with pytest.raises(SparkError, match="'few' has no partition 2: it has 2"):
        run(broker, arrow(value=[b"a"], partition=[2]), topic)


def test_a_record_that_is_larger_than_asked_for_is_told(broker: Broker) -> None:
    topic = broker.create_topic("large", 1)
    with pytest.raises(SparkError, match=r"option 'kafka\.max\.request\.size', which is 1000"):
        run(broker, arrow(value=[bytes(2000)]), topic, record_bytes_max=1000)


def test_the_next_task_goes_on_with_the_same_connections(broker: Broker) -> None:
    topic = broker.create_topic("kept", 1)
    access, settings = Access(broker.bootstrap_servers, client_id="kept"), SinkSettings()
    batch = arrow(value=[b"a"])
    for _ in range(2):
        assert write(access, settings, [batch], layout(batch, topic)) == 1
    kept = sink_task._kept[access, settings]
    wrong = arrow(value=[b"a"], partition=[7])
    with pytest.raises(SparkError):
        write(access, settings, [wrong], layout(wrong, topic))
    assert (access, settings) not in sink_task._kept, "what failed is not used again"
    assert write(access, settings, [batch], layout(batch, topic)) == 1
    last = sink_task._kept.pop((access, settings))
    last.close()
    assert last is not kept
    assert values(broker, topic) == [b"a"] * 3


def test_a_connection_that_died_between_two_tasks_is_opened_again(broker: Broker) -> None:
    topic = broker.create_topic("idle", 1)
    task = SinkTask(Access(broker.bootstrap_servers), SinkSettings())
    for value in (b"a", b"b"):
        batch = arrow(value=[value])
        task.write([batch], layout(batch, topic))
        broker.drop_connections()
    task.close()
    assert values(broker, topic) == [b"a", b"b"]


WRITES_MUCH = """
import resource, sys
import pyarrow as pa
from ottla.spark.options import Access
from ottla.spark.sink.producer import SinkSettings
from ottla.spark.sink.rows import Layout
from ottla.spark.sink.task import SinkTask

def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def batches(count):
    for number in range(count):
        yield pa.record_batch([[bytes(4096)] * 1000], ["value"])

task = SinkTask(Access(sys.argv[1]), SinkSettings())
layout = Layout(sys.argv[2], (("value", 0),))
task.write(batches(5), layout)
before = peak_kib()
assert task.write(batches(75), layout) == 75_000
print(peak_kib() - before)
"""


def test_a_task_needs_no_more_memory_the_more_it_writes(broker: Broker) -> None:
    """300 MB, of which 4 MB come at a time."""
    topic = broker.create_topic("much", 2)
    done = subprocess.run(
        [sys.executable, "-c", WRITES_MUCH, broker.bootstrap_servers, topic],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 40 * 1024
