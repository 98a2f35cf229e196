"""A job for tests that kill: a topic goes to another topic and into a Delta table.

    python -m tests.spark.copy_job '{"bootstrap": ..., "source": ..., "target": ..., ...}'

It takes what there is, in small micro-batches, and ends. Run again, it goes on where it was.
"""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ottla.spark as ot

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

ROWS_A_BATCH = 1000
STARTS_MAX = 10


def stumbler(notes: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The first attempt at every partition fails when it has given all of its rows."""

    def stumble(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        Path(notes, f"attempt-{context.partitionId()}-{context.attemptNumber()}").touch()
        yield from batches
        if context.attemptNumber() == 0:
            raise RuntimeError("the first attempt fails")

    return stumble


def run_all(starts: "list[Callable[[], StreamingQuery]]") -> None:
    """To their end; what a busy machine could not start in Spark's ten seconds, again."""
    running = [start() for start in starts]
    for index, start in enumerate(starts):
        for _ in range(STARTS_MAX):
            try:
                running[index].awaitTermination()
                break
            except Exception as failure:
                if "Python worker failed to connect back" not in str(failure):
                    raise
                running[index] = start()
        else:
            raise SystemExit("the machine is too busy")


def main() -> None:
    order = json.loads(sys.argv[1])
    directory = Path(order["directory"])
    spark = ot.session(
        "copy",
        master=order.get("master", "local[2,8]"),
        **{
            "spark.ui.enabled": False,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(directory / "local"),
            "spark.ottla.bootstrap.servers": order["bootstrap"],
            **order.get("settings", {}),
        },
    )
    spark.sparkContext.setLogLevel("ERROR")
    rows = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", order["bootstrap"])
        .option("subscribe", order["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", order.get("rows_a_batch", ROWS_A_BATCH))
        .load()
    )
    numbers = rows.selectExpr("key", "value", "int(string(value)) as number")
    if order.get("stumbles"):
        numbers = numbers.mapInArrow(stumbler(str(directory)), numbers.schema)
    once = {"availableNow": True}

    def copy() -> "StreamingQuery":
        return ot.to_log(
            numbers.select("key", "value"),
            checkpoint=directory / "checkpoint-log",
            topic=order["target"],
            trigger=once,
        )

    def store() -> "StreamingQuery":
        return ot.to_delta(
            numbers.select("number"),
            directory / "lake",
            checkpoint=directory / "checkpoint-lake",
            trigger=once,
        )

    run_all([copy, store])
    spark.stop()


if __name__ == "__main__":
    main()
