"""Dead letters back to their original topics, as a batch job: `reprocess`.

The committed offsets of a group on the dead letter topic mark reprocessed letters; `ottla dlq` uses
the same group, so each letter is taken once. Offsets are committed after all letters are written; a
job that fails before takes the same letters next time.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.blocking import Client
from ottla.client.groups import Groups, UnknownGroup
from ottla.client.offsets import EARLIEST, LATEST, find_offsets
from ottla.model.types import Offset, TopicPartition
from ottla.spark.dead_letters import (
    EXCEPTION_CLASS,
    EXCEPTION_MESSAGE,
    OFFSET,
    PARTITION,
    PREFIX,
    TOPIC,
)
from ottla.spark.errors import SparkError
from ottla.spark.options import BOOTSTRAP
from ottla.spark.sink.query import find_bootstrap

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Offsets = dict[TopicPartition, Offset]


class Waiting(NamedTuple):
    """Offset ranges of dead letters not reprocessed yet, by partition."""

    begins: Offsets
    ends: Offsets

    @property
    def letters(self) -> int:
        return sum(end - self.begins[place] for place, end in self.ends.items())


def replay_group(topic: str) -> str:
    """The group whose offsets mark replayed letters of a topic."""
    return f"ottla-dlq-replay-{topic}"


def reprocess(
    spark: "SparkSession",
    dead_letter: str,
    *,
    bootstrap: str | None = None,
    fix: "Callable[[DataFrame], DataFrame] | None" = None,
    topic: str | None = None,
    group: str | None = None,
    options: Mapping[str, str] | None = None,
) -> int:
    """Write the letters of a topic that were not reprocessed yet; returns their number.

    `fix` gets a frame of `read_dead_letters` and returns the one to write: rows that it omits count
    as processed. Letters go to their original topics, or to `topic`.
    """
    where = find_bootstrap(spark, bootstrap)
    group = group or replay_group(dead_letter)
    with Client(where) as client:
        waiting = client.run(_waiting(client, dead_letter, group))
        if not waiting.letters:
            return 0
        frame = read_dead_letters(spark, dead_letter, bootstrap=where, waiting=waiting)
        if topic is not None:
            frame = frame.drop("topic", "partition")
        fixed = frame if fix is None else fix(frame)
        writer = fixed.write.format("ottla").mode("append").option(BOOTSTRAP, where)
        if topic is not None:
            writer = writer.option("topic", topic)
        writer.options(**(options or {})).save()
        client.run(Groups(client.cluster).commit(group, waiting.ends))
    return waiting.letters


def read_dead_letters(
    spark: "SparkSession",
    dead_letter: str,
    *,
    bootstrap: str | None = None,
    waiting: Waiting | None = None,
) -> "DataFrame":
    """Dead letters in their original form: key, value, own headers, topic, partition, timestamp.

    Column `error` has the kind, the message, and the original offset.
    """
    from pyspark.sql import functions as sql

    reader = (
        spark.read.format("ottla")
        .option(BOOTSTRAP, find_bootstrap(spark, bootstrap))
        .option("subscribe", dead_letter)
        .option("includeHeaders", "true")
    )
    if waiting is not None:
        reader = reader.option("startingOffsets", _as_json(waiting.begins))
        reader = reader.option("endingOffsets", _as_json(waiting.ends))
    own = sql.filter("headers", lambda header: ~header["key"].startswith(PREFIX))
    return reader.load().select(
        "key",
        "value",
        own.alias("headers"),
        _told(TOPIC).alias("topic"),
        _told(PARTITION).cast("int").alias("partition"),
        "timestamp",
        sql.struct(
            _told(EXCEPTION_CLASS).alias("kind"),
            _told(EXCEPTION_MESSAGE).alias("message"),
            _told(OFFSET).cast("long").alias("offset"),
        ).alias("error"),
    )


def _told(name: str) -> "Column":
    from pyspark.sql import functions as sql

    found = sql.filter("headers", lambda header: header["key"] == name)
    return sql.get(found, 0)["value"].cast("string")


def _as_json(offsets: Offsets) -> str:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(topics)


async def _waiting(client: Client, topic: str, group: str) -> Waiting:
    groups = Groups(client.cluster)
    try:
        if (await groups.describe(group)).is_active:
            raise SparkError(
                f"group {group!r} has members: its offsets say what was processed again, so nobody"
                " may read for it; name another with group="
            )
    except UnknownGroup:
        pass
    known = await client.cluster.topic(topic)
    places = [TopicPartition(topic, index) for index in sorted(known.partitions)]
    starts = await find_offsets(client.cluster, dict.fromkeys(places, EARLIEST))
    ends = await find_offsets(client.cluster, dict.fromkeys(places, LATEST))
    committed = await groups.offsets(group)
    begins = {
        place: max(starts[place].offset, committed[place].offset if place in committed else 0)
        for place in places
    }
    return Waiting(begins, {place: ends[place].offset for place in places})
