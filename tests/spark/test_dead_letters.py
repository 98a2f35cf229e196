"""Good and bad rows apart, and bad ones processed again."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla.spark as ot
from ottla.client.message import Message
from ottla.consumer import dead_letters as consumers
from ottla.spark.errors import SparkError
from ottla.testing import Broker
from tests.spark.reading import read, read_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id long not null, amount double"
GOOD = '{"id": 1, "amount": 2.5}'
BAD = [
    (b"{", "no JSON of the form id bigint, amount double"),
    (b"", "no JSON"),
    (b"null", "no JSON"),
    (b'{"id": "x"}', "no JSON"),
    (b'{"id": 1, "amount": \xff}', "not UTF-8"),
    (b'{"amount": 1}', "field 'id' has no value"),
    (b'{"id": 2, "amount": -1}', "the condition does not hold: amount > 0"),
]


def produce_all(broker: Broker, topic: str) -> None:
    broker.create_topic(topic, 2)
    broker.produce(topic, GOOD, key="good", headers=[("own", b"1")])
    broker.produce(topic, None, key="deleted")
    for value, _ in BAD:
        broker.produce(topic, value, key="bad", headers=[("own", b"2")], partition=1)


def told(message: Message) -> consumers.DeadLetter:
    return consumers.read_dead_letter(message)


@pytest.mark.parametrize("way", ["union", "together"])
def test_a_record_is_in_exactly_one_of_both_topics(
    spark: "SparkSession", broker: Broker, topic: str, tmp_path: Path, way: str
) -> None:
    produce_all(broker, topic)
    clean, letters = broker.create_topic(f"{topic}-clean"), broker.create_topic(f"{topic}-dlq", 3)
    source = read_stream(spark, broker, topic, includeHeaders="true")
    parts = ot.split(
        source, SCHEMA, dead_letter=letters, topic=clean, valid="amount > 0 or amount is null"
    )
    good, dead = parts
    ot.to_log(
        good.unionByName(dead) if way == "union" else parts.together,
        checkpoint=tmp_path / "checkpoint",
        bootstrap=broker.bootstrap_servers,
        topic_column="topic",
        trigger={"availableNow": True},
    ).awaitTermination()

    written = broker.records(clean)
    assert [(record.key, record.value) for record in written] == [
        (b"good", GOOD.encode()),
        (b"deleted", None),
    ]
    assert written[0].headers == (("own", b"1"),)
    records = broker.records(letters)
    originals = {record.offset: record for record in broker.records(topic) if record.key == b"bad"}
    assert len(records) == len(BAD)
    for record in records:
        letter = told(record)
        assert letter.offset is not None
        original = originals.pop(letter.offset)
        assert (letter.topic, letter.partition) == (topic, 1)
        assert (record.key, record.value) == (b"bad", original.value)
        assert record.timestamp_ms == original.timestamp_ms
        assert letter.headers == (("own", b"2"),)
        assert letter.error_message is not None
        expected = next(sentence for value, sentence in BAD if value == original.value)
        assert expected in letter.error_message or "amount > 0" in letter.error_message
        assert (letter.error_class or "").startswith("ottla.spark.")
        assert letter.group == "spark"
    assert not originals


def test_parsed_fields_are_columns(spark: "SparkSession", broker: Broker, topic: str) -> None:
    produce_all(broker, topic)
    frame = read(spark, broker, topic)
    good, dead = ot.split(frame, SCHEMA, dead_letter="dlq")
    rows = {bytes(row.key): (row.id, row.amount) for row in good.collect()}
    assert rows[b"deleted"] == (None, None)
    assert rows[b"good"] == (1, 2.5)
    assert dead.where("id is not null").count() == 0
    nested, _ = ot.split(frame, "value string", dead_letter="dlq", into="data")
    assert nested.schema["data"].dataType.simpleString() == "struct<value:string>"
    with pytest.raises(SparkError, match="field 'value' has the name of a column of the record"):
        ot.split(frame, "value string", dead_letter="dlq")


def test_dead_letters_are_processed_again_once(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    produce_all(broker, topic)
    letters = broker.create_topic(f"{topic}-dlq", 2)
    target = broker.create_topic(f"{topic}-again", 2)
    frame = read(spark, broker, topic, includeHeaders="true")
    where = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    dead = ot.split(frame, SCHEMA, dead_letter=letters).dead
    dead.write.format("ottla").options(**where).mode("append").save()

    def fix(rows: "DataFrame") -> "DataFrame":
        assert rows.columns == ["key", "value", "headers", "timestamp", "error"]
        kept = rows.where("error.message like '%no JSON%' and value != binary('')")
        return kept.selectExpr("key", "concat('fixed ', string(value)) as value", "headers")

    def again() -> int:
        return ot.reprocess(
            spark, letters, bootstrap=broker.bootstrap_servers, fix=fix, topic=target
        )

    assert again() == 6
    fixed = broker.records(target)
    assert sorted(record.value or b"" for record in fixed) == [
        b"fixed null",
        b"fixed {",
        b'fixed {"id": "x"}',
    ]
    assert {record.headers for record in fixed} == {(("own", b"2"),)}
    assert again() == 0, "each letter is taken once"
    dead.limit(1).write.format("ottla").options(**where).mode("append").save()
    assert again() == 1


def test_dead_letters_go_back_to_where_they_came_from(
    spark: "SparkSession", broker: Broker, topic: str
) -> None:
    produce_all(broker, topic)
    letters = broker.create_topic(f"{topic}-dlq")
    frame = read(spark, broker, topic, includeHeaders="true")
    where = {"kafka.bootstrap.servers": broker.bootstrap_servers}
    dead = ot.split(frame, SCHEMA, dead_letter=letters).dead
    dead.write.format("ottla").options(**where).mode("append").save()
    before = len(broker.records(topic))
    assert ot.reprocess(spark, letters, bootstrap=broker.bootstrap_servers) == 6
    returned = [r for r in broker.records(topic) if r.partition == 1][-6:]
    assert len(broker.records(topic)) == before + 6
    assert [record.value for record in returned] == [value for value, _ in BAD[:6]]
    assert {record.headers for record in returned} == {(("own", b"2"),)}
