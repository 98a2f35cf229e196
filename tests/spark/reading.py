"""What the tests of the source share: a reader with its address, and rows as plain tuples."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ottla.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery


def read(spark: "SparkSession", broker: Broker, topic: str, **options: Any) -> "DataFrame":  # noqa: ANN401
    """A batch; `subscribe` is the topic unless the options choose otherwise."""
    chosen = {"kafka.bootstrap.servers": broker.bootstrap_servers, **options}
    if not {"subscribePattern", "assign"} & set(options):
        chosen.setdefault("subscribe", topic)
    return spark.read.format("ottla").options(**chosen).load()


def read_stream(spark: "SparkSession", broker: Broker, topic: str, **options: Any) -> "DataFrame":  # noqa: ANN401
    """A stream from the beginning, unless the options say otherwise."""
    chosen = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "startingOffsets": "earliest",
        **options,
    }
    if not {"subscribePattern", "assign"} & set(options):
        chosen.setdefault("subscribe", topic)
    return spark.readStream.format("ottla").options(**chosen).load()


class Collector:
    """A sink that keeps the rows of each micro-batch."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Any]] = {}

    def __call__(self, frame: "DataFrame", batch_id: int) -> None:
        self.batches[batch_id] = frame.collect()

    @property
    def rows(self) -> list[Any]:
        return [row for _, rows in sorted(self.batches.items()) for row in rows]

    @property
    def values(self) -> list[bytes]:
        return [bytes(row["value"]) for row in self.rows]


def run_to_end(frame: "DataFrame", checkpoint: Path, sink: Collector) -> "StreamingQuery":
    """Everything there is at this moment, and then no more."""
    query = start(frame, checkpoint, sink, availableNow=True)
    query.awaitTermination()
    return query


def start(
    frame: "DataFrame",
    checkpoint: Path,
    sink: Collector,
    **trigger: Any,  # noqa: ANN401
) -> "StreamingQuery":
    return (
        frame.writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(checkpoint))
        .trigger(**(trigger or {"processingTime": "0 seconds"}))
        .start()
    )
