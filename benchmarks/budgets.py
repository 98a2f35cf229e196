"""The budgets of the project as data: ratios that a run on any machine has to hold.

Most compare medians of one run: against a limit of the machine, against Apache Kafka, or against
ourselves in an easier case. A few are absolute. A round trip with one request in flight is mostly
the kernel waking two processes, so there Kafka is held to by latency and not by the 2.5 times of
small produces.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.results import Results

OURS, KAFKA = "ottla", "kafka"
CONNECTOR, CONNECTOR_TUNED = "connector", "connector_tuned"  # Spark's own.
REQUESTS, RECORDS, BYTES = "requests_per_s", "records_per_s", "mb_per_s"
CPU = "cpu_s_per_gb"


@dataclass(frozen=True, slots=True)
class Budget:
    """`case` and `metric` of ours, over those of `against` (a contender, in `base` or `case`)."""

    what: str
    case: str
    metric: str
    against: str = ""  # Empty: the figure itself is bound.
    base: str = ""
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    budget: Budget
    measured: float

    @property
    def bound(self) -> str:
        if self.budget.at_least is not None:
            return f">= {self.budget.at_least:g}"
        return f"<= {self.budget.at_most:g}"

    @property
    def is_held(self) -> bool:
        least, most = self.budget.at_least, self.budget.at_most
        return self.measured >= least if least is not None else self.measured <= (most or 0)


def _against_kafka() -> Iterator[Budget]:
    for case, what, metric, speed, cpu in (
        ("small-c32-d5", "100 B, 32 x 5", REQUESTS, 2.5, 0.85),
        ("small-c1-d64", "100 B, 1 x 64", REQUESTS, 2.5, 0.85),
        ("batches-16k", "16 KiB", BYTES, 1.2, 0.5),
        ("batches-1m", "1 MiB", BYTES, 1.0, 0.85),
        ("librdkafka-produce-100", "librdkafka produce 100 B", RECORDS, 1.0, 0.85),
        ("librdkafka-produce-1024", "librdkafka produce 1 KiB", RECORDS, 1.0, 0.85),
        ("librdkafka-consume-100", "librdkafka consume 100 B", RECORDS, 1.0, 0.85),
        ("librdkafka-consume-1024", "librdkafka consume 1 KiB", RECORDS, 1.0, 0.85),
    ):
        yield Budget(f"{what}: speed of Kafka's", case, metric, KAFKA, at_least=speed)
        yield Budget(f"{what}: CPU s/GB of Kafka's", case, CPU, KAFKA, at_most=cpu)
    for percentile in ("p50", "p99"):
        what = f"round trip: {percentile} of Kafka's"
        yield Budget(what, "round-trip", f"{percentile}_us", KAFKA, at_most=1.0)


def _java_against_kafka() -> Iterator[Budget]:
    """Kafka's Java clients with their defaults."""
    for partitions in (1, 12, 100):
        for size, label in ((100, "100 B"), (1024, "1 KiB")):
            for what, speed in (("produce", 1.1), ("consume", 1.0)):
                case = f"java-{what}-{partitions}-{size}"
                name = f"Java {what} {label}, {partitions} partitions"
                yield Budget(f"{name}: speed of Kafka's", case, RECORDS, KAFKA, at_least=speed)
                yield Budget(f"{name}: CPU s/GB of Kafka's", case, CPU, KAFKA, at_most=0.6)


def _against_connector() -> Iterator[Budget]:
    """Ours with its defaults; Spark's with its defaults and tuned, on the same broker."""
    for peer in (OURS, KAFKA):
        for size in (100, 1024):
            for what, default, tuned in (
                ("batch", 1.5, 1.0),
                ("stream", 1.5, 1.0),
                ("sink", 1.0, 0.7),
            ):
                case, where = f"spark-{what}-{size}-{peer}", f"{what} {size} B on {peer}"
                yield Budget(
                    f"Spark {where}: of its connector", case, RECORDS, CONNECTOR, at_least=default
                )
                yield Budget(
                    f"Spark {where}: of it tuned", case, RECORDS, CONNECTOR_TUNED, at_least=tuned
                )


def _groups() -> Iterator[Budget]:
    """By CPU where a figure is the broker's own work; on a shared machine the clock says little."""
    for case, what in (
        ("commits-1", "commits of 1 consumer"),
        ("commits-16", "commits of 16 consumers"),
        ("heartbeats-classic", "heartbeats, classic"),
        ("heartbeats-consumer", "heartbeats, consumer"),
    ):
        yield Budget(f"{what}: CPU of Kafka's", case, "cpu_us_per_request", KAFKA, at_most=1.0)
    for kind in ("classic", "consumer"):
        what = f"100 members, {kind}: time of Kafka's"
        yield Budget(what, f"stable-{kind}", "stable_s", KAFKA, at_most=1.2)
    yield Budget("1,000,000 commits: start of Kafka's", "loading", "load_s", KAFKA, at_most=1.0)


KILLS = {
    "kill-leader": "kill -9 of a leader",
    "kill-controller": "kill -9 of a leader and controller",
    "kill-coordinator": "kill -9 of a leader and coordinator",
}


def _cluster() -> Iterator[Budget]:
    """Three nodes, three replicas, acks=all."""
    for case, what, metric in (
        ("cluster-produce-100", "100 B", RECORDS),
        ("cluster-produce-1024", "1 KiB", BYTES),
    ):
        yield Budget(f"cluster, {what}: speed of Kafka's", case, metric, KAFKA, at_least=1.5)
    what = "cluster, round trip: p50 of Kafka's"
    yield Budget(what, "cluster-round-trip", "p50_us", KAFKA, at_most=0.5)
    for case, what in KILLS.items():
        yield Budget(f"{what}: gap of Kafka's", case, "gap_s", KAFKA, at_most=0.1)
        yield Budget(f"{what}: gap, s", case, "gap_s", at_most=1.0)


BUDGETS: tuple[Budget, ...] = (
    Budget("100 B, 32 x 5: of bare framing", "small-c32-d5", REQUESTS, "loop_framing", "", 0.35),
    Budget("100 B, 1 x 1: of bare framing", "small-c1-d1", REQUESTS, "loop_framing", "", 0.35),
    Budget("16 KiB: MB/s of receiving", "batches-16k", BYTES, "receiving", at_least=0.6),
    Budget("16 KiB: CPU s/GB of receiving", "batches-16k", CPU, "receiving", at_most=2.0),
    Budget("1 MiB: MB/s of receiving", "batches-1m", BYTES, "receiving", at_least=0.6),
    Budget("1 MiB: CPU s/GB of receiving", "batches-1m", CPU, "receiving", at_most=2.0),
    Budget("catch-up fetch: of bare sendfile", "catch-up-1m", BYTES, "sending", at_least=0.8),
    *_against_kafka(),
    *_java_against_kafka(),
    *_against_connector(),
    *_groups(),
    *_cluster(),
    Budget("start to first reply, s", "start", "start_s", at_most=0.3),
    Budget("idle memory, MB", "start", "idle_mb", at_most=60),
    Budget(
        "1,000 partitions: of one", "partitions-1000", REQUESTS, OURS, "partitions-1", at_least=0.8
    ),
    Budget("1,000 idle connections, MB", "idle-1000", "added_mb", at_most=10),
    Budget("beside 1,000 idle: speed", "beside-1000", REQUESTS, OURS, "beside-0", at_least=0.95),
)


def judge(results: Results) -> list[Verdict]:
    """A verdict on every budget whose figures were measured."""
    verdicts = []
    for budget in BUDGETS:
        ours = results.median(budget.case, OURS, budget.metric)
        if ours is None:
            continue
        if budget.against:
            base = results.median(budget.base or budget.case, budget.against, budget.metric)
            if not base:
                continue
            ours /= base
        verdicts.append(Verdict(budget, ours))
    return verdicts
