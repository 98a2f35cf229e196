"""PySpark: our source and sink beside Spark's own Kafka connector.

One Spark session on two cores, contenders in turn. `Ottla` is our connector with its defaults;
Spark's is measured with its defaults and tuned. `spark_kafka` is the same on Apache Kafka.
"""

import os
import re
import shutil
import statistics
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import Producer

from benchmarks.budgets import CONNECTOR, CONNECTOR_TUNED, OURS
from benchmarks.peers import Ottla, Peer
from benchmarks.programs import BUILD
from benchmarks.session import Session, rdkafka
from benchmarks.spark_connector import TUNED_SINK, TUNED_SOURCE, NoConnectorError, jars

PARTITIONS = 4
METRICS_PORT_STEP = 45
FILL_SECONDS_MAX = 120
DECODE_SECONDS = 0.3  # One fetch is decoded in a millisecond or two, which is too short a time.
ONE_ROW_BATCHES = 15
KEY = "cast(cast(id as string) as binary)"
VALUES = {
    100: "cast(rpad(cast(id as string), 100, 'abcdefghij') as binary)",
    1024: "cast(rpad(cast(id as string), 1024, 'abcdefghij') as binary)",
}


@dataclass(frozen=True, slots=True)
class Contender:
    name: str
    format: str
    source: dict[str, str] = field(default_factory=dict)
    sink: dict[str, str] = field(default_factory=dict)


def run(session: Session) -> None:
    _decode(session)
    compare(session, Ottla)


def compare(session: Session, kind: type[Peer]) -> None:
    from ottla.spark import session as spark_session

    # With byte code kept, as on a user's machine: Spark starts a Python for every query.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(BUILD / "pycache")
    contenders = [Contender(OURS, "ottla")]
    settings = {"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 4}
    try:
        settings["spark.jars"] = ",".join(map(str, jars()))
        contenders.append(Contender(CONNECTOR, "kafka"))
        contenders.append(Contender(CONNECTOR_TUNED, "kafka", TUNED_SOURCE, TUNED_SINK))
    except NoConnectorError as failure:
        session.console.print(f"Spark's own connector is left out: {failure}", style="red")
    spark = spark_session("benchmarks", cores=2, **settings)
    spark.sparkContext.setLogLevel("OFF")
    more = {}
    if kind is Ottla:
        port = session.options.port + METRICS_PORT_STEP
        more["ottla.metrics.listener"] = f"127.0.0.1:{port}"
    peer = session.new_peer(kind, more)
    try:
        peer.start()
        Rounds(session, spark, peer, contenders).run()
    finally:
        peer.stop()
        spark.stop()


def _decode(session: Session) -> None:
    """Record batches to Arrow on one core, without a broker or Spark."""
    from ottla.records.batch import HEADER_BYTES, Batch
    from ottla.records.record import Record, build_batch
    from ottla.spark.arrow.batch_scan import Placed
    from ottla.spark.arrow.columnar import Decoder
    from ottla.spark.arrow.schema import COLUMNS

    for size in VALUES:
        per_batch = 16_000 // (size + 20)
        data, placed = bytearray(), []
        for number in range((2 << 20) // 16_000):
            first = number * per_batch
            made = [
                Record(first + n, n, b"12345678", bytes([n % 256]) * (size + n % 20))
                for n in range(per_batch)
            ]
            batch = build_batch(made)
            placed.append(Placed(len(data) + HEADER_BYTES, Batch.parse(batch)))
            data += batch
        decoder = Decoder("orders", 0, COLUMNS)
        for number in range(session.options.rounds + 1):
            started_at = time.perf_counter()
            rows, seconds = 0, 0.0
            while seconds < DECODE_SECONDS:
                rows += sum(made.num_rows for made in decoder.decode(data, placed, 0, 1 << 60))
                seconds = time.perf_counter() - started_at
            if number == 0:
                continue  # What is imported and compiled on first use.
            case = (f"spark-decode-{size}", f"decode {size} B, one core", "records_per_s")
            session.note(case, OURS, {"records_per_s": rows / seconds})


class Rounds:
    """All cases on one broker."""

    def __init__(
        self,
        session: Session,
        spark: Any,  # noqa: ANN401
        peer: Peer,
        contenders: list[Contender],
    ) -> None:
        self._session = session
        self._spark = spark
        self._peer = peer
        self._contenders = contenders
        self._scale = min(1.0, session.options.seconds)
        self._number = 0

    def run(self) -> None:
        for size, count in ((100, 3_000_000), (1024, 600_000)):
            rows = int(count * self._scale)
            topic = f"rows-{size}"
            self._peer.create_topic(topic, PARTITIONS)
            options = {"s": size, "n": rows, "P": PARTITIONS}
            rdkafka("produce", self._peer, topic, FILL_SECONDS_MAX, **options)
            self._compare("batch", size, rows, partial(self._read_batch, topic))
            self._compare("stream", size, rows, partial(self._read_stream, topic))
            self._peer.delete_topic(topic, until_gone=True)
            rows = rows * 2 // 3
            self._compare("sink", size, rows, partial(self._write, size, rows))
        for contender in self._contenders:
            self._one_row(contender)

    def _compare(
        self, what: str, size: int, rows: int, measure: Callable[[Contender], float]
    ) -> None:
        for number in range(self._session.options.rounds + 1):
            for contender in self._contenders:
                seconds = measure(contender)
                if number == 0:
                    continue  # The JVM and the page cache are cold.
                case = (
                    f"spark-{what}-{size}-{self._peer.name}",
                    f"{what} {size} B on {self._peer.name}",
                    "records_per_s",
                )
                figures = {"records_per_s": rows / seconds, "mb_per_s": rows * size / seconds / 1e6}
                self._session.note(case, contender.name, figures)

    def _read_batch(self, topic: str, contender: Contender) -> float:
        started_at = time.perf_counter()
        frame = (
            self._spark.read.format(contender.format)
            .options(**self._address(), subscribe=topic, **contender.source)
            .load()
        )
        frame.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started_at

    def _read_stream(self, topic: str, contender: Contender) -> float:
        started_at = time.perf_counter()
        query = self._stream(topic, contender).trigger(availableNow=True).start()
        query.awaitTermination()
        return time.perf_counter() - started_at

    def _write(self, size: int, rows: int, contender: Contender) -> float:
        topic = f"written-{self._next()}"
        self._peer.create_topic(topic, PARTITIONS)
        frame = self._spark.range(0, rows, numPartitions=2)
        frame = frame.selectExpr(f"{KEY} as key", f"{VALUES[size]} as value")
        started_at = time.perf_counter()
        (
            frame.write.format(contender.format)
            .options(**self._address(), topic=topic, **contender.sink)
            .mode("append")
            .save()
        )
        seconds = time.perf_counter() - started_at
        self._peer.delete_topic(topic, until_gone=True)
        return seconds

    def _one_row(self, contender: Contender) -> None:
        """How long a micro-batch of one row takes, and how many requests it costs."""
        topic = f"single-{self._next()}"
        self._peer.create_topic(topic, PARTITIONS)
        producer = Producer({"bootstrap.servers": self._peer.bootstrap, "linger.ms": 0})
        query = self._stream(topic, contender).trigger(processingTime="0 seconds").start()
        try:
            took: list[int] = []
            before: dict[str, float] = {}
            for number in range(ONE_ROW_BATCHES + 3):
                if number == 3:  # After what is asked only once.
                    before = self._requests()
                producer.produce(topic, b"x" * 100, partition=number % PARTITIONS)
                producer.flush(10)
                took.append(_wait_for_batch(query, number + 1))
            after = self._requests()
        finally:
            query.stop()
        case = (
            f"spark-one-row-{self._peer.name}",
            f"micro-batch of one row on {self._peer.name}",
            "p50_us",
        )
        figures = {"p50_us": 1000.0 * statistics.median(took[3:])}
        asked = {
            api: (after[api] - before.get(api, 0)) / ONE_ROW_BATCHES
            for api in after
            if api not in ("Produce", "Metadata", "ApiVersions") and after[api] > before.get(api, 0)
        }
        if asked:
            figures |= {
                "requests_per_batch": sum(asked.values()),
                "list_offsets_per_batch": asked.get("ListOffsets", 0.0),
            }
        self._session.note(case, contender.name, figures)
        self._peer.delete_topic(topic)

    def _stream(self, topic: str, contender: Contender) -> Any:  # noqa: ANN401
        checkpoint = self._session.directory / f"checkpoint-{self._next()}"
        shutil.rmtree(checkpoint, ignore_errors=True)
        return (
            self._spark.readStream.format(contender.format)
            .options(**self._address(), subscribe=topic, **contender.source)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(checkpoint))
        )

    def _address(self) -> dict[str, str]:
        return {"kafka.bootstrap.servers": self._peer.bootstrap}

    def _requests(self) -> dict[str, float]:
        """Requests so far by API, from a broker that tells."""
        if "ottla.metrics.listener" not in self._peer.more:
            return {}
        address = f"http://{self._peer.more['ottla.metrics.listener']}/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            text = answer.read().decode()
        found = re.findall(r'^ottla_requests_total\{api="(\w+)"\} (\S+)', text, re.MULTILINE)
        return {api: float(count) for api, count in found}

    def _next(self) -> int:
        self._number += 1
        return self._number


def _wait_for_batch(query: Any, rows_total: int) -> int:  # noqa: ANN401
    """The milliseconds of the batch in which the stream reached so many rows."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done = [one for one in query.recentProgress if one["numInputRows"]]
        if sum(one["numInputRows"] for one in done) >= rows_total:
            return int(done[-1]["durationMs"]["triggerExecution"])
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        time.sleep(0.01)
    raise TimeoutError("a micro-batch took more than a minute")
