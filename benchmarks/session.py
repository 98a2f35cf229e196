"""One run: the brokers, the limits, and the rounds in which they take turns.

Contenders alternate in short rounds, each round with a topic of its own that is deleted after it.
A virtual machine faults on the first touch of a page, so a round that writes much would measure
the hypervisor: before it, a scratch file of the same size makes its pages recycled ones, for every
contender alike. Medians over rounds are what is reported.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from rich.console import Console

from benchmarks.clusters import Cluster
from benchmarks.limit_servers import LIMITS, Limit
from benchmarks.peers import Kafka, Ottla, Peer
from benchmarks.programs import run_program
from benchmarks.results import Results, rates

FREE_BYTES_MIN = 8 << 30
PEER_PORTS_STEP = 10
LIMIT_PORTS_FIRST = 40
CHUNK = bytes(1 << 20)


class Target(Protocol):
    """Anything that load can be sent to."""

    name: str
    port: int

    @property
    def pid(self) -> int: ...


Measure = Callable[[Target, str, float], dict[str, float]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A case: what is sent, to whom, and which metric stands for it."""

    name: str
    title: str
    metric: str
    measure: Measure
    partitions: int = 1
    limits: tuple[str, ...] = ()
    written_bytes: int = 0  # What a round writes; its pages are recycled before.
    fill: Callable[[Target, str], object] | None = None  # Given once; rounds then only read.


@dataclass(slots=True)
class Options:
    rounds: int = 5
    seconds: float = 1.2
    warm_seconds: float = 15.0
    peers: tuple[str, ...] = (Ottla.name, Kafka.name)
    port: int = 21700
    directory: Path | None = None


@dataclass(slots=True)
class Session:
    options: Options
    console: Console
    results: Results = field(default_factory=Results)
    benchmark: str = ""
    _directory: Path | None = None
    _running: dict[str, Peer] = field(default_factory=dict)
    _made: int = 0

    @property
    def directory(self) -> Path:
        if self._directory is None:
            made = tempfile.mkdtemp(prefix="ottla-benchmarks-", dir=self.options.directory)
            self._directory = Path(made)
        return self._directory

    def close(self) -> None:
        for peer in self._running.values():
            peer.stop()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def kinds(self) -> list[type[Peer]]:
        return [kind for kind in (Ottla, Kafka) if kind.name in self.options.peers]

    def new_peer(self, kind: type[Peer], more: Mapping[str, str] | None = None) -> Peer:
        """A broker of the caller's own, not started yet, in an empty directory."""
        self._made += 1
        port = self.options.port + PEER_PORTS_STEP * (2 + (kind is Kafka))
        return kind(self.directory / f"{kind.name}-{self._made}", port, more)

    def new_cluster(self, kind: type[Peer]) -> Cluster:
        """A cluster of the caller's own, not started yet, in an empty directory."""
        self._made += 1
        port = self.options.port + PEER_PORTS_STEP * (2 + (kind is Kafka))
        return Cluster(kind, self.directory / f"{kind.name}-{self._made}", port)

    def peers(self) -> list[Peer]:
        """The brokers that all comparisons share, started and warm."""
        for number, kind in enumerate(self.kinds()):
            if kind.name not in self._running:
                port = self.options.port + PEER_PORTS_STEP * number
                peer = kind(self.directory / kind.name, port)
                self._running[kind.name] = peer
                peer.start()
                warm_up(peer, self.options.warm_seconds)
        return list(self._running.values())

    def compare(self, comparison: Comparison) -> None:
        peers, limits = self.peers(), self._limits(comparison)
        try:
            if comparison.fill is None:
                self._write_in_rounds(comparison, [*peers, *limits])
            else:
                self._read_in_rounds(comparison, peers, limits)
        finally:
            for limit in limits:
                limit.stop()

    def note(
        self,
        case: tuple[str, str, str],
        contender: str,
        one: dict[str, float],
    ) -> None:
        """Keep a round's figures; a line on the terminal tells that something happens."""
        self.results.note(self.benchmark, case, contender, one)
        figures = "  ".join(f"{name} {value:,.4g}" for name, value in one.items())
        self.console.print(f"  {case[0]} {contender}: {figures}", style="dim", soft_wrap=True)

    def _write_in_rounds(self, comparison: Comparison, targets: Sequence[Target]) -> None:
        for number in range(self.options.rounds):
            for target in _rotated(targets, number):
                topic = f"{comparison.name}-{number}"
                if isinstance(target, Peer):
                    target.create_topic(topic, comparison.partitions)
                recycle_pages(self.directory, comparison.written_bytes)
                self._measure(comparison, target, topic)
                if isinstance(target, Peer):
                    target.delete_topic(topic, until_gone=comparison.written_bytes > 0)

    def _read_in_rounds(
        self, comparison: Comparison, peers: list[Peer], limits: list[Limit]
    ) -> None:
        assert comparison.fill is not None, "there is something to read"
        for peer in peers:
            peer.create_topic(comparison.name, comparison.partitions)
            comparison.fill(peer, comparison.name)
        for number in range(self.options.rounds):
            for target in _rotated([*peers, *limits], number):
                self._measure(comparison, target, comparison.name)
        for peer in peers:
            peer.delete_topic(comparison.name)

    def _measure(self, comparison: Comparison, target: Target, topic: str) -> None:
        one = comparison.measure(target, topic, self.options.seconds)
        case = (comparison.name, comparison.title, comparison.metric)
        self.note(case, target.name, one)

    def _limits(self, comparison: Comparison) -> list[Limit]:
        limits = []
        for name in comparison.limits:
            port = self.options.port + LIMIT_PORTS_FIRST + list(LIMITS).index(name)
            limits.append(Limit(name, port, self.directory))
            limits[-1].start()
        return limits


def raw(target: Target, topic: str, seconds: float, **options: object) -> dict[str, float]:
    """One round of the raw load generator; `options` are its letters."""
    letters = {"m": "produce"} | options
    if isinstance(target, Limit) and letters["m"] == "produce":
        letters["m"] = "frame"
    letters |= {"p": target.port, "i": target.pid, "T": topic, "t": seconds}
    arguments = [text for letter, value in letters.items() for text in (f"-{letter}", value)]
    return rates(run_program("raw", arguments, seconds + 60))


def rdkafka(
    what: str, target: Target, topic: str, seconds: float, **options: object
) -> dict[str, float]:
    """One round of the load generator on librdkafka; `options` are its letters."""
    letters = {"b": f"127.0.0.1:{target.port}", "i": target.pid, "T": topic, "t": seconds}
    letters |= options
    arguments = [text for letter, value in letters.items() for text in (f"-{letter}", value)]
    return rates(run_program("rdkafka", [what, *arguments], seconds + 120))


def warm_up(peer: Peer, seconds: float) -> None:
    """Load of each kind: a cold JVM is several times slower than a warm one."""
    topic = "warm-up"
    peer.create_topic(topic, 4)
    raw(peer, topic, seconds / 2, c=32, d=5, P=4)
    raw(peer, topic, seconds / 8, c=4, d=5, s=1000, r=16, P=4, b=1 << 29)
    raw(peer, topic, seconds / 8, c=4, d=2, s=1000, r=1024, P=4, b=1 << 29)
    raw(peer, topic, seconds / 8, m="fetch", c=4, P=4)
    rdkafka("produce", peer, topic, seconds / 8, P=4)
    peer.delete_topic(topic, until_gone=True)


def recycle_pages(directory: Path, size: int) -> None:
    """Write and delete so many bytes, so that the next pages were touched before."""
    free = shutil.disk_usage(directory).free
    if free < FREE_BYTES_MIN + size:
        raise SystemExit(f"only {free >> 20} MB are free in {directory}: nothing is measured there")
    scratch = directory / "scratch"
    with scratch.open("wb", buffering=0) as file:
        for _ in range(size // len(CHUNK)):
            file.write(CHUNK)
    scratch.unlink()


def _rotated(targets: Sequence[Target], number: int) -> list[Target]:
    first = number % len(targets)
    return [*targets[first:], *targets[:first]]
