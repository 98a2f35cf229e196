import pickle

import pyarrow as pa

from ottla.spark.arrow.schema import COLUMNS
from ottla.spark.source.task import Task, read
from ottla.testing import Broker
from tests.unit.spark.sources import delete_before, fill, manner_for, source_of


def test_what_was_deleted_is_not_read_though_its_batch_is_still_there(broker: Broker) -> None:
    topic = broker.create_topic("task-deleted")
    fill(broker, topic, 1)
    delete_before(broker, topic, 6)
    task = Task(source_of(broker, topic), 2, 10)
    manner = manner_for(broker, fails_on_data_loss=False)
    made = [row for batch in read(task, manner, ("offset",)) for row in batch.to_pylist()]
    assert [row["offset"] for row in made] == [6, 7, 8, 9]


def test_a_task_travels_and_reads_its_range(broker: Broker) -> None:
    topic = broker.create_topic("task")
    fill(broker, topic, 5)
    task = pickle.loads(pickle.dumps(Task(source_of(broker, topic), 13, 37)))
    assert str(task) == "Task(task-0 offsets 13 to 36)"
    made = list(read(task, manner_for(broker), ("offset", "value")))
    rows = [row for batch in made for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == list(range(13, 37))
    assert rows[0]["value"] == b"1-3"


def test_a_task_holds_a_few_fetches_however_long_its_range_is(broker: Broker) -> None:
    topic = broker.create_topic("task-memory")
    for _ in range(24):
        broker.produce(topic, *["x" * 10_000] * 80, partition=0)
    manner = manner_for(broker, fetch_bytes=1 << 20)
    held, total = 0, 0
    before = pa.total_allocated_bytes()
    for batch in read(Task(source_of(broker, topic), 0, 24 * 80), manner, COLUMNS):
        total += batch.nbytes
        held = max(held, pa.total_allocated_bytes() - before)
    assert total > 18 << 20
    assert held < 5 << 20
