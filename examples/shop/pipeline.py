"""Spark's part: customers become a table; orders are enriched, billed, and counted by the minute.

    orders ──┬─ good, with the customer's discount ──> orders.billed
             ├─ bad ─────────────────────────────────> orders.dlq
             └─ good, per minute ────────────────────> lake/minutes    (Delta)
    shop.public.customers (the tail of PostgreSQL) ──> lake/customers  (Delta)

It runs until a line comes on its standard input, processes the remaining records, and ends.
"""

import json
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming import StreamingQuery

import ottla.spark as ot
from examples.shop.orders import BILLED, CUSTOMERS_TOPIC, DEAD_LETTERS, TOPIC

ORDER = "order_id string not null, customer int not null, cents long not null"
CUSTOMER = "id int, name string, discount int"
EVERY = {"processingTime": "2 seconds"}
# On a busy machine Python workers may start too slowly for Spark.
CROWDED = "Python worker failed to connect back"
FAILURES_MAX = 10


def stream(spark: SparkSession, bootstrap: str, topic: str, group: str) -> DataFrame:
    return (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("group", group)  # So that every tool shows Spark's lag.
        .load()
    )


def customers_now(spark: SparkSession, bootstrap: str) -> DataFrame:
    """The current customers: the last record of each key, if it has a value."""
    rows = (
        spark.read.format("ottla")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", CUSTOMERS_TOPIC)
        .load()
    )
    last = rows.groupBy("key").agg(sql.max_by("value", "offset").alias("value"))
    row = sql.from_json(sql.col("value").cast("string"), CUSTOMER)
    return last.where("value is not null").select(row.alias("c")).select("c.id", "c.discount")


def bills(orders: DataFrame, customers: DataFrame) -> DataFrame:
    """Good orders with their price, and bad ones unchanged, each with its topic."""
    both = ot.split(
        orders, ORDER, dead_letter=DEAD_LETTERS, topic=BILLED, valid="cents > 0"
    ).together
    discount = sql.coalesce(sql.col("discount"), sql.lit(0))
    bill = sql.struct(
        "order_id",
        "customer",
        "cents",
        discount.alias("discount"),
        sql.floor(sql.col("cents") * (100 - discount) / 100).alias("net"),
    )
    value = sql.when(sql.col("order_id").isNull(), sql.col("value"))
    return both.join(sql.broadcast(customers), both["customer"] == customers["id"], "left").select(
        "key", value.otherwise(sql.to_json(bill).cast("binary")).alias("value"), "topic", "headers"
    )


def minutes(orders: DataFrame) -> DataFrame:
    good, _ = ot.split(orders, ORDER, dead_letter=DEAD_LETTERS, valid="cents > 0")
    return (
        good.groupBy(sql.window("timestamp", "1 minute").alias("window"))
        .agg(sql.count("*").alias("orders"), sql.sum("cents").alias("cents"))
        .select(sql.col("window.start").alias("minute"), "orders", "cents")
    )


def customer_changes(changes: DataFrame) -> DataFrame:
    """The records of the tail as rows: the key is the customer; without a value, a deletion."""
    key = sql.from_json(sql.col("key").cast("string"), "id int")
    row = sql.from_json(sql.col("value").cast("string"), CUSTOMER)
    return changes.select(
        key["id"].alias("id"),
        row["name"].alias("name"),
        row["discount"].alias("discount"),
        "offset",
        sql.col("value").isNull().alias("is_gone"),
    )


def main(bootstrap: str, directory: str) -> None:
    lake, checkpoints = Path(directory) / "lake", Path(directory) / "checkpoints"
    spark = ot.session(
        "shop", cores=2, **{"spark.sql.shuffle.partitions": 2, "spark.ui.enabled": False}
    )
    spark.sparkContext.setLogLevel("OFF")  # Failures are printed below.

    def keep_customers() -> StreamingQuery:
        return ot.to_delta(
            customer_changes(stream(spark, bootstrap, CUSTOMERS_TOPIC, "spark-customers")),
            lake / "customers",
            checkpoint=checkpoints / "customers",
            key="id",
            sequence="offset",
            delete="is_gone",
            trigger=EVERY,
        )

    def bill() -> StreamingQuery:
        def write(orders: DataFrame, _batch: int) -> None:
            both = bills(orders, customers_now(orders.sparkSession, bootstrap))
            writer = both.write.format("ottla").mode("append")
            writer.option("kafka.bootstrap.servers", bootstrap).save()

        return (
            stream(spark, bootstrap, TOPIC, "spark-bills")
            .writeStream.foreachBatch(write)  # Reads the current customers for each micro-batch.
            .option("checkpointLocation", str(checkpoints / "bills"))
            .trigger(**EVERY)
            .start()
        )

    def count() -> StreamingQuery:
        return ot.to_delta(
            minutes(stream(spark, bootstrap, TOPIC, "spark-minutes")),
            lake / "minutes",
            checkpoint=checkpoints / "minutes",
            key="minute",
            trigger=EVERY,
        )

    queries = [Supervised(start) for start in (keep_customers, bill, count)]
    print(json.dumps({"spark": "running"}), flush=True)
    while not select.select([sys.stdin], [], [], 1)[0]:
        for query in queries:
            query.check()
    for query in queries:
        query.finish()
    print(json.dumps({"spark": "ended"}), flush=True)
    spark.stop()


class Supervised:
    """A query that is restarted if it fails; its checkpoint holds its progress."""

    def __init__(self, start: Callable[[], StreamingQuery]) -> None:
        self._start = start
        self._failures = 0
        self._query = start()
        # One after the other: each starts Python processes, which have ten seconds to start.
        while "nitializing" in self._query.status["message"]:
            self.check()
            time.sleep(0.2)

    def check(self) -> None:
        failure = self._query.exception()
        if failure is None:
            return
        self._failures += 1
        print(f"{self._start.__name__}: {str(failure).splitlines()[0]}", file=sys.stderr)
        if self._failures > FAILURES_MAX or CROWDED not in str(failure):
            raise failure
        time.sleep(1)
        self._query = self._start()

    def finish(self) -> None:
        """Process the remaining records."""
        while True:
            try:
                self._query.processAllAvailable()
                break
            except StreamingQueryException:
                self.check()
        self._query.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
