import pickle
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

from ottla.client.blocking import Client
from ottla.client.groups import Groups
from ottla.model.types import TopicPartition
from ottla.spark.arrow.schema import COLUMNS, spark_schema
from ottla.spark.errors import BadOption, DataLoss
from ottla.spark.source.stream_reader import StreamReader
from ottla.testing import Broker
from tests.unit.spark.sources import fill

AT_ONCE = {"kafka.metadata.max.age.ms": "0"}


def reader(broker: Broker, topic: str, **more: str) -> StreamReader:
    options = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "startingOffsets": "earliest",
        **more,
    }
    if "subscribePattern" not in more:
        options.setdefault("subscribe", topic)
    return StreamReader(spark_schema(COLUMNS), options)


def ends(offset: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {topic: entry["partitions"] for topic, entry in offset["topics"].items()}


def rows(made: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[int, int]]:
    tasks = made.partitions(start, end)
    in_task = pickle.loads(pickle.dumps(made))
    return sorted(
        (row["partition"], row["offset"])
        for task in tasks
        for batch in in_task.read(task)
        for row in batch.to_pylist()
    )


def advance(made: StreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return made.latestOffset(start, made.getDefaultReadLimit())


def test_a_stream_reads_from_start_to_end_and_then_waits(broker: Broker) -> None:
    topic = broker.create_topic("stream")
    fill(broker, topic, 2)
    made = reader(broker, topic)
    start = made.initialOffset()
    assert ends(start) == {topic: {"0": 0}}
    end = advance(made, start)
    assert rows(made, start, end) == [(0, n) for n in range(20)]
    assert advance(made, end) == end
    assert made.reportLatestOffset() == end
    assert made.partitions(end, end) == []
    made.commit(end)
    made.stop()


def test_limits_are_those_of_the_options(broker: Broker) -> None:
    topic = broker.create_topic("stream-limits")
    fill(broker, topic, 2)
    assert reader(broker, topic).getDefaultReadLimit() == ReadAllAvailable()
    made = reader(broker, topic, maxOffsetsPerTrigger="8")
    assert made.getDefaultReadLimit() == ReadMaxRows(8)
    start = made.initialOffset()
    assert ends(advance(made, start)) == {topic: {"0": 8}}
    assert ends(made.latestOffset(start, ReadAllAvailable())) == {topic: {"0": 20}}
    made.stop()
    made = reader(broker, topic, maxBytesPerTrigger="100")
    assert made.getDefaultReadLimit() == ReadMaxBytes(100)
    assert 0 < ends(advance(made, start))[topic]["0"] < 20
    made.stop()
    limit = reader(broker, topic, minOffsetsPerTrigger="5").getDefaultReadLimit()
    assert limit == ReadMinRows(5)


def test_few_rows_wait_until_there_are_more_or_time_is_over(broker: Broker) -> None:
    topic = broker.create_topic("stream-min")
    fill(broker, topic, 1)
    made = reader(broker, topic, minOffsetsPerTrigger="15", maxTriggerDelay="1h")
    first = advance(made, made.initialOffset())
    assert ends(first) == {topic: {"0": 10}}
    fill(broker, topic, 1)
    assert advance(made, first) == first
    fill(broker, topic, 1)
    assert ends(advance(made, first)) == {topic: {"0": 30}}
    made.stop()
    hasty = reader(broker, topic, minOffsetsPerTrigger="1000", maxTriggerDelay="0")
    advance(hasty, hasty.initialOffset())
    assert ends(advance(hasty, first)) == {topic: {"0": 30}}
    hasty.stop()


def test_what_comes_later_is_not_taken_by_a_query_that_takes_what_there_is(broker: Broker) -> None:
    topic = broker.create_topic("stream-now")
    fill(broker, topic, 1)
    made = reader(broker, topic)
    made.prepareForTriggerAvailableNow()
    start = made.initialOffset()
    fill(broker, topic, 1)
    end = advance(made, start)
    assert ends(end) == {topic: {"0": 10}}
    assert advance(made, end) == end
    made.stop()


def test_new_partitions_and_topics_are_read_from_their_first_record(broker: Broker) -> None:
    topic = broker.create_topic("stream-new-a")
    fill(broker, topic, 1)
    made = reader(
        broker, topic, subscribePattern="stream-new-.", startingOffsets="latest", **AT_ONCE
    )
    start = made.initialOffset()
    with Client(broker.bootstrap_servers) as client:
        client.run(client.admin.create_partitions(topic, 2))
    broker.create_topic("stream-new-b")
    broker.produce(topic, "x", partition=1)
    broker.produce("stream-new-b", "y", "z")
    end = advance(made, start)
    assert ends(end) == {topic: {"0": 10, "1": 1}, "stream-new-b": {"0": 2}}
    assert rows(made, start, end) == [(0, 0), (0, 1), (1, 0)]
    made.stop()


def test_a_topic_that_vanished_or_was_made_anew_is_loss(broker: Broker) -> None:
    topic = broker.create_topic("stream-anew")
    fill(broker, topic, 2)
    made = reader(broker, topic)
    end = advance(made, made.initialOffset())
    broker.delete_topic(topic)
    with pytest.raises(DataLoss, match="topic 'stream-anew' is gone"):
        advance(made, end)
    broker.create_topic(topic)
    fill(broker, topic, 1)
    with pytest.raises(DataLoss, match="deleted and made anew"):
        advance(made, end)
    made.stop()
    lenient = reader(broker, topic, failOnDataLoss="false")
    after = advance(lenient, end)
    assert rows(lenient, end, after) == [(0, n) for n in range(10)]
    lenient.stop()


def test_a_topic_made_anew_with_more_records_is_told_apart_by_its_id(broker: Broker) -> None:
    topic = broker.create_topic("stream-longer")
    fill(broker, topic, 1)
    made = reader(broker, topic, **AT_ONCE)
    end = advance(made, made.initialOffset())
    broker.delete_topic(topic)
    broker.create_topic(topic)
    fill(broker, topic, 5)
    with pytest.raises(DataLoss, match="deleted and made anew"):
        advance(made, end)
    made.stop()


def test_a_log_that_was_cut_is_loss_and_read_on_from_its_end_if_so_wanted(broker: Broker) -> None:
    topic = broker.create_topic("stream-cut")
    fill(broker, topic, 1)
    made = reader(broker, topic)
    beyond = made.initialOffset()
    beyond["topics"][topic]["partitions"]["0"] = 30
    with pytest.raises(DataLoss, match="read up to offset 30, but its log ends at 10"):
        advance(made, beyond)
    made.stop()
    lenient = reader(broker, topic, failOnDataLoss="false")
    cut = advance(lenient, beyond)
    assert ends(cut) == {topic: {"0": 10}}
    fill(broker, topic, 1)
    assert rows(lenient, cut, advance(lenient, cut)) == [(0, n) for n in range(10, 20)]
    lenient.stop()


def test_done_work_is_committed_to_the_group_once(broker: Broker) -> None:
    topic = broker.create_topic("stream-group")
    fill(broker, topic, 1)
    made = reader(broker, topic, group="stream-group")
    start = made.initialOffset()
    end = advance(made, start)
    place = TopicPartition(topic, 0)
    with Client(broker.bootstrap_servers) as client:
        groups = Groups(client.cluster)
        assert client.run(groups.offsets("stream-group"))[place].offset == 0
        advance(made, end)
        assert client.run(groups.offsets("stream-group"))[place].offset == 10
        broker.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED")
        assert advance(made, end) == end, "what is committed already is not committed again"
        fill(broker, topic, 1)
        later = advance(made, end)
        assert ends(advance(made, later)) == {topic: {"0": 20}}, "a failure later stops nothing"
    broker.clear_faults()
    made.stop()


def test_a_group_that_cannot_be_told_is_named_at_once(broker: Broker) -> None:
    topic = broker.create_topic("stream-group-bad")
    fill(broker, topic, 1)
    made = reader(broker, topic, group="stream-forbidden")
    broker.fail("OffsetCommit", "GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(BadOption, match="option 'group' is 'stream-forbidden'"):
        advance(made, made.initialOffset())
    broker.clear_faults()
    made.stop()


def test_wrong_options_are_told_before_anything_is_asked() -> None:
    options = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "x", "endingOffsets": "{}"}
    with pytest.raises(BadOption):
        StreamReader(spark_schema(COLUMNS), options)
