"""Three nodes, three replicas, acks=all through librdkafka: speed, round trip, start and memory.

CPU is that of all three nodes. A topic has three partitions, led by one node each.
"""

from functools import partial
from typing import NamedTuple

from benchmarks.clusters import Cluster
from benchmarks.session import Session, rdkafka, recycle_pages

PARTITIONS = 3
ROUND_SECONDS_MAX = 30  # A round ends by its number of records.
REPLICAS = 3


class Case(NamedTuple):
    name: str
    title: str
    metric: str
    what: str  # Of the load generator.
    size: int
    count: int  # Records of a round; none: it ends by time.


CASES = (
    Case("cluster-produce-100", "3 replicas, 100 B", "records_per_s", "produce", 100, 1_000_000),
    Case("cluster-produce-1024", "3 replicas, 1 KiB", "mb_per_s", "produce", 1024, 200_000),
    Case("cluster-round-trip", "3 replicas, round trip", "p50_us", "roundtrip", 100, 0),
)


def run(session: Session) -> None:
    clusters = [session.new_cluster(kind) for kind in session.kinds()]
    try:
        for cluster in clusters:
            _start(session, cluster)
        for case in CASES:
            for number in range(session.options.rounds):
                for cluster in clusters[number % 2 :] + clusters[: number % 2]:
                    _measure(session, cluster, case, f"{case.name}-{number}")
    finally:
        for cluster in clusters:
            cluster.stop()


def _start(session: Session, cluster: Cluster) -> None:
    """A cold JVM is several times slower than a warm one."""
    started = {"start_s": cluster.start(), "idle_mb": cluster.resident_mb()}
    session.note(("cluster-start", "start of three nodes", "start_s"), cluster.name, started)
    cluster.create_topic("warm-up", PARTITIONS)
    load = partial(_load, cluster, "warm-up", session.options.warm_seconds / 3)
    load("produce", s=100)
    load("produce", s=1024)
    load("roundtrip", s=100)
    cluster.delete_topic("warm-up")


def _measure(session: Session, cluster: Cluster, case: Case, topic: str) -> None:
    count = int(case.count * min(1.0, session.options.seconds))
    seconds = ROUND_SECONDS_MAX if count else session.options.seconds
    cluster.create_topic(topic, PARTITIONS)
    recycle_pages(session.directory, count * case.size * REPLICAS)
    one = _load(cluster, topic, seconds, case.what, s=case.size, n=count)
    one["resident_mb"] = cluster.resident_mb()
    session.note((case.name, case.title, case.metric), cluster.name, one)
    cluster.delete_topic(topic)


def _load(
    cluster: Cluster, topic: str, seconds: float, what: str, **letters: object
) -> dict[str, float]:
    shared = {"P": PARTITIONS, "a": "all", "b": cluster.bootstrap, "i": cluster.pids}
    return rdkafka(what, cluster, topic, seconds, **shared, **letters)
