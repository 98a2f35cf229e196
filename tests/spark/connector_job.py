"""What `test_spark_connector` runs in a JVM of its own: all that Spark's connector can do."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def values(frame: DataFrame) -> list[str]:
    return sorted(row.v for row in frame.selectExpr("cast(value as string) v").collect())


def main(order: dict[str, Any]) -> None:
    spark = (
        SparkSession.builder.master("local[3]")
        .config("spark.jars", order["jars"])
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    address = {"kafka.bootstrap.servers": order["bootstrap"]}
    checkpoints = Path(order["directory"])

    def read(**options: str) -> DataFrame:
        return spark.read.format("kafka").options(**address, **options).load()

    def stream() -> DataFrame:
        reader = spark.readStream.format("kafka").options(**address, subscribe="source")
        return reader.option("startingOffsets", "earliest").load().select("key", "value")

    found = {"batch": values(read(subscribe="source", minPartitions="5"))}
    found["by_time"] = values(read(subscribePattern="sour.*", startingTimestamp="1000"))
    offsets = '{"source": {"0": 95}}'
    found["by_offset"] = values(read(assign='{"source": [0]}', startingOffsets=offsets))
    batch = read(subscribe="source").select("key", "value")
    batch.write.format("kafka").options(**address, topic="copied").save()
    sink = stream().writeStream.format("kafka").options(**address, topic="streamed")
    sink = sink.option("checkpointLocation", str(checkpoints / "streamed"))
    sink.trigger(availableNow=True).start().awaitTermination()
    sink = stream().writeStream.format("kafka").options(**address, topic="realtime")
    sink = sink.option("checkpointLocation", str(checkpoints / "realtime")).outputMode("update")
    query = sink.trigger(realTime="10 seconds").start()
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and len(values(read(subscribe="realtime"))) < 300:
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        time.sleep(1)
    query.stop()
    spark.stop()
    print(json.dumps(found))  # noqa: T201


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
