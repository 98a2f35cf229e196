"""What can be read off a broker at any moment, for those who watch it."""

import os
import resource
import sys
from collections.abc import Iterator

from ottla import __version__
from ottla.broker.metrics.metrics import Metrics
from ottla.broker.node.broker import Broker
from ottla.broker.partitions.replicated_partition import ReplicatedPartition
from ottla.env.turns import Turns
from ottla.replication.leader import Leader

BYTES_PER_MAXRSS = 1 if sys.platform == "darwin" else 1024


def add_gauges(broker: Broker) -> None:
    """Name everything once; nothing is read before someone asks."""
    add, directories = broker.metrics.add_gauge, broker.directories
    add("ottla_info", "The version that runs.", lambda: {__version__: 1}, label="version")
    add("ottla_connections", "Open connections.", lambda: len(broker.connections.open))
    partitions = broker.partitions
    add(
        "ottla_partitions",
        "Partitions this broker leads.",
        lambda: sum(partition.is_leader for partition in partitions.all()),
    )
    _add_replication(broker)
    _add_elections(broker)
    broker.cluster_gauges.add()
    add("ottla_topics", "Topics of the cluster.", lambda: len(broker.image.topics_by_name))
    add("ottla_fetch_sessions", "Incremental fetch sessions.", lambda: len(broker.fetch_sessions))
    add(
        "ottla_request_memory_bytes",
        "Memory that requests take which are being received or served.",
        lambda: broker.memory.used_bytes,
    )
    add(
        "ottla_log_bytes",
        "Bytes of the logs in each directory.",
        lambda: {d.path: sum(log.size_bytes for log in d.logs.values()) for d in directories.all()},
        label="directory",
    )
    add(
        "ottla_log_directory_online",
        "Whether each log directory can be used.",
        lambda: {d.path: d.failure is None for d in directories.all()},
        label="directory",
    )
    add(
        "ottla_log_directory_full",
        "Whether each log directory refuses writes for want of space.",
        lambda: {d.path: d.is_full for d in directories.all()},
        label="directory",
    )
    _add_cleaner(broker)
    broker.metrics.add_counter(
        "ottla_peer_failures_total",
        "Connections closed because an exception came out of serving them.",
        lambda: broker.env.network.peer_failures,
    )
    broker.metrics.add_counter(
        "ottla_process_cpu_seconds_total", "Time this process has computed for.", _cpu_seconds
    )
    add("ottla_process_resident_bytes", "Memory this process takes.", _resident_bytes)


def add_turns(metrics: Metrics, turns: Turns) -> None:
    metrics.add_histogram(
        "ottla_loop_turn_seconds",
        "Turns of the event loop: CPU time and blocking calls, in which nothing else is served.",
        turns.histogram,
    )


def _add_cleaner(broker: Broker) -> None:
    add, count = broker.metrics.add_gauge, broker.metrics.add_counter
    count(
        "ottla_damaged_logs_total",
        "Logs that were found damaged: log lines name the file and the place.",
        lambda: broker.partitions.damages,
    )
    count(
        "ottla_cleaner_read_bytes_total",
        "Bytes that compaction has read.",
        lambda: broker.cleaner.read_bytes,
    )
    count(
        "ottla_cleaner_written_bytes_total",
        "Bytes that compaction has left of them.",
        lambda: broker.cleaner.written_bytes,
    )
    add(
        "ottla_cleaner_uncleanable_partitions",
        "Partitions that are not compacted any more: their log lines say why.",
        lambda: len(broker.cleaner.uncleanable),
    )


def _add_replication(broker: Broker) -> None:
    add = broker.metrics.add_gauge

    def replicated() -> Iterator[ReplicatedPartition]:
        return (p for p in broker.partitions.all() if isinstance(p, ReplicatedPartition))

    def led() -> list[Leader]:
        return [p.leader for p in replicated() if p.leader is not None]

    def lags() -> list[int]:
        followers = [p.follower for p in replicated() if p.follower is not None]
        return [f.leader_high_watermark - f.fetch_offset for f in followers]

    add(
        "ottla_followed_partitions",
        "Partitions this broker follows.",
        lambda: sum(not partition.is_leader for partition in broker.partitions.all()),
    )
    add(
        "ottla_drained",
        "Whether the controller is to empty this broker.",
        lambda: broker.settings.ottla_drained,
    )
    add(
        "ottla_under_replicated_partitions",
        "Partitions led here of which a replica is not in sync.",
        lambda: sum(len(leader.isr) < len(leader.assignment.replicas) for leader in led()),
    )
    add(
        "ottla_under_min_isr_partitions",
        "Partitions led here that refuse acks=all: too few replicas are in sync.",
        lambda: sum(leader.is_under_min_isr for leader in led()),
    )
    add(
        "ottla_replica_lag_records_max",
        "How many records the slowest in-sync follower of a partition led here lacks.",
        lambda: max((leader.lag_max for leader in led()), default=0),
    )
    add(
        "ottla_follower_lag_records_max",
        "How many committed records a partition followed here lacks at most.",
        lambda: max((0, *lags())),
    )


def _add_elections(broker: Broker) -> None:
    count, proposals = broker.metrics.add_counter, broker.replicas.proposals
    count(
        "ottla_isr_shrinks_total", "Replicas that fell out of sync here.", lambda: proposals.shrunk
    )
    count(
        "ottla_isr_expands_total", "Replicas that came into sync here.", lambda: proposals.expanded
    )
    count(
        "ottla_unclean_elections_total",
        "Elections of this broker to lead what it may not have all of.",
        lambda: broker.partitions.unclean_elections,
    )


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _resident_bytes() -> float:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # Elsewhere than on Linux, the most it ever took is all there is to know.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BYTES_PER_MAXRSS
