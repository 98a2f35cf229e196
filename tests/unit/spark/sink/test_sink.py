import pickle
from collections.abc import Iterator

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from ottla.spark.errors import BadOption, SparkError
from ottla.spark.sink import cluster as sink_cluster
from ottla.spark.sink import task as sink_task
from ottla.spark.sink.sink import Plan, Written, batch_writer, stream_writer
from ottla.testing import Broker
from tests.unit.spark.sink_world import arrow, values


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """What tasks leave open for the next ones."""
    yield
    while sink_task._kept:
        sink_task._kept.popitem()[1].close()


VALUE = StructType([StructField("value", BinaryType())])


def options(broker: Broker, topic: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic}


def test_a_writer_crosses_to_its_tasks_and_their_messages_come_back(broker: Broker) -> None:
    topic = broker.create_topic("crossing", 1)
    writer = stream_writer(VALUE, options(broker, topic), False)
    first, second = (pickle.loads(pickle.dumps(writer)) for _ in range(2))
    messages = [first.write([arrow(value=[b"a", b"b"])]), second.write([arrow(value=[b"c"])])]
    assert [message.rows for message in messages] == [2, 1]
    assert len({message.plan for message in messages}) == 1, "one write has one plan"
    stream_writer(VALUE, options(broker, topic), False).commit(messages, 0)
    assert values(broker, topic) == [b"a", b"b", b"c"]


def test_every_write_is_planned_anew(broker: Broker) -> None:
    topic = broker.create_topic("planned", 1)
    plans = set()
    for _ in range(2):
        writer = pickle.loads(pickle.dumps(batch_writer(VALUE, options(broker, topic), False)))
        message = writer.write([])
        plans.add(message.plan)
        writer.commit([message, None])
    assert len(plans) == 2


def test_a_writer_that_only_ends_a_write_asks_nobody() -> None:
    nowhere = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    writer = stream_writer(VALUE, nowhere, False)
    writer.commit([Written(Plan("a"), 3)], 7)
    writer.abort([Written(Plan("a"), 3), None], 7)


def test_tasks_of_two_writes_are_not_ended_as_one(broker: Broker) -> None:
    writer = stream_writer(VALUE, options(broker, "any"), False)
    with pytest.raises(SparkError, match="two different writes"):
        writer.commit([Written(Plan("a"), 1), Written(Plan("b"), 1)], 0)


def test_a_topic_that_is_missing_is_told_before_a_task_runs(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_cluster, "AUTO_CREATE_S_MAX", 0.1)
    with pytest.raises(BadOption, match="option 'topic' is 'missing': there is no such topic"):
        batch_writer(VALUE, options(broker, "missing"), False)
    with pytest.raises(BadOption, match=r"option 'topic' is 'a b': .*name is not allowed"):
        pickle.dumps(stream_writer(VALUE, options(broker, "a b"), False))


def test_a_cluster_that_is_not_there_is_told() -> None:
    nowhere = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    with pytest.raises(BadOption, match=r"option 'kafka\.bootstrap\.servers'.*nothing listens"):
        batch_writer(VALUE, nowhere, False)


def test_a_topic_is_not_overwritten(broker: Broker) -> None:
    with pytest.raises(SparkError, match="cannot be overwritten"):
        batch_writer(VALUE, options(broker, "any"), True)
