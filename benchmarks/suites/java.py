"""Kafka's own ProducerPerformance and ConsumerPerformance with the defaults of the Java clients.

The producer is idempotent, asks for acks=all and puts the batches of all ready partitions into one
request; the consumer joins a group. A round is a new JVM, so the client starts cold for both
brokers; the broker's CPU time is taken around it.
"""

import re
import subprocess
from functools import partial

from benchmarks.peers import Peer, classpath, java
from benchmarks.programs import LoadFailedError
from benchmarks.results import GB, MB
from benchmarks.session import Comparison, Session, Target

PARTITIONS = (1, 12, 100)
SECONDS_MAX = 180
TOOLS = "org.apache.kafka.tools"

_SENT = re.compile(r"([\d.]+) records/sec .* ([\d.]+) ms 50th.* ([\d.]+) ms 99th")


def run(session: Session) -> None:
    scale = min(1.0, session.options.seconds)
    for partitions in PARTITIONS:
        for size, label, count in ((100, "100 B", 5_000_000), (1024, "1 KiB", 1_000_000)):
            records = int(count * scale)
            where = f"{partitions} partition{'s' * (partitions > 1)}"
            session.compare(
                Comparison(
                    name=f"java-produce-{partitions}-{size}",
                    title=f"Java produce {label}, {where}",
                    metric="records_per_s",
                    measure=partial(_produce, records, size),
                    partitions=partitions,
                    written_bytes=records * size,
                )
            )
            session.compare(
                Comparison(
                    name=f"java-consume-{partitions}-{size}",
                    title=f"Java consume {label}, {where}",
                    metric="records_per_s",
                    measure=partial(_consume, records, size),
                    partitions=partitions,
                    fill=partial(_fill, records, size),
                )
            )


def _produce(
    records: int, size: int, target: Target, topic: str, _seconds: float
) -> dict[str, float]:
    said, cpu_seconds = _run(
        target,
        *("ProducerPerformance", "--topic", topic, "--num-records", records),
        *("--record-size", size, "--throughput", -1),
    )
    found = _SENT.findall(said)
    if not found:
        raise LoadFailedError(f"ProducerPerformance said {said[-400:]}")
    rate, p50_ms, p99_ms = map(float, found[-1])
    latencies = {"p50_us": p50_ms * 1000, "p99_us": p99_ms * 1000}
    return latencies | _rates(rate, records, size, cpu_seconds)


def _consume(
    records: int, size: int, target: Target, topic: str, _seconds: float
) -> dict[str, float]:
    """The rate leaves out the time until the group is stable, as the tool's own does."""
    said, cpu_seconds = _run(
        target,
        *("ConsumerPerformance", "--topic", topic, "--num-records", records, "--hide-header"),
        *("--timeout", 1000 * SECONDS_MAX),
    )
    columns = said.strip().rpartition("\n")[2].split(", ")
    if len(columns) != 10 or int(columns[4]) < records:
        raise LoadFailedError(f"ConsumerPerformance said {said[-400:]}")
    return _rates(float(columns[9]), records, size, cpu_seconds)


def _fill(records: int, size: int, target: Target, topic: str) -> None:
    _produce(records, size, target, topic, 0)


def _run(target: Target, tool: str, *arguments: object) -> tuple[str, float]:
    """What the tool printed, and the CPU seconds of the broker meanwhile."""
    assert isinstance(target, Peer), "a tool of Kafka's needs a whole broker"
    command = [java(), "-Xmx512M", "-cp", classpath(), f"{TOOLS}.{tool}"]
    command += ["--bootstrap-server", target.bootstrap, *map(str, arguments)]
    before = target.process.cpu_seconds()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise LoadFailedError(f"{tool} did not end within {SECONDS_MAX} s") from None
    if done.returncode:
        raise LoadFailedError(f"{tool}: {done.stderr.strip()[-400:]}")
    return done.stdout, target.process.cpu_seconds() - before


def _rates(rate: float, records: int, size: int, cpu_seconds: float) -> dict[str, float]:
    moved = records * size
    return {
        "records_per_s": rate,
        "mb_per_s": rate * size / MB,
        "cpu_s_per_gb": cpu_seconds / (moved / GB),
        "cpu_cores": cpu_seconds / (records / rate),
    }
