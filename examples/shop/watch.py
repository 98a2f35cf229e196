"""Samples the log while all programs run: records of each topic, lag of each group."""

import asyncio
import threading
import time
from dataclasses import dataclass, field

from ottla.client.cluster import Cluster
from ottla.client.groups import Groups, UnknownGroup
from ottla.client.lag import find_lags
from ottla.client.metadata import UnknownTopic
from ottla.client.offsets import LATEST, find_offsets
from ottla.client.session import run
from ottla.model.types import TopicPartition

EVERY_SECONDS = 1.0
TOLD_EVERY_SECONDS = 10.0


@dataclass
class Watch:
    """A thread that samples once a second."""

    bootstrap: str
    topics: list[str]
    groups: list[str]
    seconds: list[float] = field(default_factory=list)
    records: dict[str, list[int]] = field(default_factory=dict)  # By topic, at these seconds.
    lags: dict[str, list[int | None]] = field(default_factory=dict)  # By group.
    quiet_since: float | None = None  # When the last order arrived.

    def start(self) -> "Watch":
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=run, args=(self._watch, self.bootstrap))
        self._thread.start()
        return self

    def orders_end(self) -> None:
        self.quiet_since = time.monotonic() - self._began

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def as_line(self) -> str:
        """The current state in one line."""
        records = ", ".join(f"{topic} {counts[-1]:,}" for topic, counts in self.records.items())
        lags = ", ".join(
            f"{group} {'-' if looks[-1] is None else format(looks[-1], ',')}"
            for group, looks in self.lags.items()
        )
        return f"{self.seconds[-1]:4.0f} s  {records}; not read yet: {lags}"

    async def _watch(self, cluster: Cluster) -> None:
        told_at = 0.0
        while not self._stop.is_set():
            self.seconds.append(time.monotonic() - self._began)
            for topic in self.topics:
                self.records.setdefault(topic, []).append(await count(cluster, topic))
            for group in self.groups:
                self.lags.setdefault(group, []).append(await lag(cluster, group))
            if self.seconds[-1] >= told_at + TOLD_EVERY_SECONDS:
                told_at += TOLD_EVERY_SECONDS
                print(self.as_line(), flush=True)
            await asyncio.sleep(EVERY_SECONDS)


async def count(cluster: Cluster, topic: str) -> int:
    """Number of records produced to a topic so far."""
    try:
        known = await cluster.topic(topic)
    except UnknownTopic:
        return 0
    places = [TopicPartition(topic, partition) for partition in known.partitions]
    ends = await find_offsets(cluster, dict.fromkeys(places, LATEST))
    return sum(found.offset for found in ends.values())


async def lag(cluster: Cluster, group: str) -> int | None:
    """Lag of a group in records; None before its first commit."""
    try:
        committed = await Groups(cluster).offsets(group)
    except UnknownGroup:
        return None
    offsets = {place: item.offset for place, item in committed.items()}
    lags = await find_lags(cluster, offsets)
    known = [item.records for item in lags.values() if item.records is not None]
    return sum(known) if known else None
