"""A job for tests that kill: a topic goes to another topic and into a Delta table.

    python -m tests.spark.copy_job '{"bootstrap": ..., "source": ..., "target": ..., ...}'

It takes what there is, in small micro-batches, and ends. Run again, it goes on where it was.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ottla.spark as ot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming import StreamingQuery

ROWS_A_BATCH = 1000
STARTS_MAX = 10
HOLD_SECONDS_MAX = 120
ROWS_AT_ONCE = 50  # That Spark hands from one step to the next, so that there is a middle.


def holder(notes: Path) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Notes every attempt at a task, and holds those at partition 0 in their middle.

    They go on when the file `go` is there; `middle` tells that one waits.
    """
    notes.mkdir(exist_ok=True)
    go, middle = str(notes / "go"), str(notes / "middle")

    def hold(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        partition, attempt = context.partitionId(), context.attemptNumber()
        note = f"attempt-{context.stageId()}-{partition}-{attempt}-{os.getpid()}"
        Path(middle).with_name(note).write_text(str(os.getppid()))
        deadline = time.monotonic() + HOLD_SECONDS_MAX
        for number, batch in enumerate(batches):
            if partition == 0 and number == 1 and not Path(go).exists():
                Path(middle).touch()
                while not Path(go).exists():
                    if time.monotonic() > deadline:
                        raise TimeoutError("nobody let it go on")
                    time.sleep(0.02)
            yield batch

    return hold


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
            "spark.sql.execution.arrow.maxRecordsPerBatch": ROWS_AT_ONCE,
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
        .option("kafka.max.partition.fetch.bytes", "16k")
        .load()
    )
    numbers = rows.selectExpr("key", "value", "int(split(string(value), ' ')[0]) as number")
    once = {"availableNow": True}

    def held(columns: list[str], name: str) -> "DataFrame":
        chosen = numbers.select(*columns)
        if not order.get("holds"):
            return chosen
        return chosen.mapInArrow(holder(directory / f"notes-{name}"), chosen.schema)

    def copy() -> "StreamingQuery":
        return ot.to_log(
            held(["key", "value"], "log"),
            checkpoint=directory / "checkpoint-log",
            topic=order["target"],
            trigger=once,
        )

    def store() -> "StreamingQuery":
        return ot.to_delta(
            held(["number"], "lake"),
            directory / "lake",
            checkpoint=directory / "checkpoint-lake",
            trigger=once,
        )

    run_all([copy, store])
    spark.stop()


if __name__ == "__main__":
    main()
