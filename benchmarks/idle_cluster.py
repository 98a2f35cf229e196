"""What partitions cost that nobody uses: CPU and memory of three nodes, and a round trip beside.

`python -m benchmarks.idle_cluster` makes 1,000 and then 5,000 partitions with three replicas, lets
them settle, and measures. It takes three minutes.
"""

import os
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Cluster

PER_TOPIC = 500
SETTLE_SECONDS = 75  # New logs are synced once, within a minute.
MEASURED_SECONDS = 15
ROUND_TRIPS = 400


def main() -> None:
    with Cluster(brokers=3) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic("used", 1, 3)])["used"].result()
        pids = [pid for node in cluster.node_ids if (pid := cluster.pid(node)) is not None]
        made = 0
        for count in (0, 1000, 5000):
            for number in range(made, count, PER_TOPIC):
                name = f"idle-{number}"
                made_now = admin.create_topics([NewTopic(name, PER_TOPIC, 3)], request_timeout=60)
                made_now[name].result()
            made = count
            time.sleep(SETTLE_SECONDS if count else 1)
            before = [cpu_seconds(pid) for pid in pids]
            time.sleep(MEASURED_SECONDS)
            spent = [cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True)]
            print(
                f"{count:,} partitions: {100 * max(spent) / MEASURED_SECONDS:.1f} % of a core and "
                f"{max(map(resident_mb, pids)):.0f} MB a node at most; "
                f"acks=all round trip p50 {1000 * round_trip_seconds(servers):.2f} ms"
            )


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def round_trip_seconds(servers: dict[str, str]) -> float:
    producer = Producer({**servers, "acks": "all", "linger.ms": 0})
    took = []
    for _ in range(ROUND_TRIPS):
        started_at = time.perf_counter()
        producer.produce("used", b"x")
        producer.flush()
        took.append(time.perf_counter() - started_at)
    return sorted(took)[ROUND_TRIPS // 2]


if __name__ == "__main__":
    main()
