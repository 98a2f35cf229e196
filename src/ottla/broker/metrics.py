"""What the broker counts, and how Prometheus reads it.

The hot path adds to plain integers: `metrics.bytes_in += size`. Everything else, names, labels and
text, happens when someone scrapes. What is read off the broker's state at that moment is a gauge:
a callable that returns a number, or a number for each value of one label. The values of a label
are capped, so that no client can make the answer grow by inventing names.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ottla.protocol.apis import ApiKey

LABEL_VALUES_MAX: Final = 200
LATENCY_BUCKETS_MS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 5000)

Reading = float | Mapping[str, float]


class Histogram:
    """Counts of observations by upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = LATENCY_BUCKETS_MS) -> None:
        self.bounds: Final = tuple(bounds)
        self.counts: Final = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


@dataclass(frozen=True, slots=True)
class Gauge:
    name: str
    help: str
    read: Callable[[], Reading]
    label: str | None = None
    kind: str = "gauge"


@dataclass(slots=True)
class Metrics:
    """The counters of one broker; a broker adds its gauges once, at start."""

    requests: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    bytes_in: int = 0  # Of record batches that were let in.
    bytes_out: int = 0  # Of record batches in fetch answers.
    batches_refused: int = 0
    connections_accepted: int = 0
    connections_refused: int = 0
    protocol_errors: int = 0
    server_errors: int = 0
    sync_ms: Histogram = field(default_factory=Histogram)
    gauges: list[Gauge] = field(default_factory=list)

    def add_gauge(
        self, name: str, help: str, read: Callable[[], Reading], label: str | None = None
    ) -> None:
        """`read` returns a number, or with a label a number for each of its values."""
        assert name not in {gauge.name for gauge in self.gauges}, "one gauge, one name"
        self.gauges.append(Gauge(name, help, read, label))

    def as_text(self) -> str:
        """Everything in Prometheus' text format."""
        lines: list[str] = []
        for gauge in (*self._counters(), *self.gauges):
            lines += _lines(gauge)
        lines += _histogram_lines(
            "ottla_sync_ms", "How long syncing log files to disk took.", self.sync_ms
        )
        return "\n".join(lines) + "\n"

    def _counters(self) -> list[Gauge]:
        def counter(name: str, help: str, read: Callable[[], Reading]) -> Gauge:
            return Gauge(name, help, read, kind="counter")

        return [
            Gauge(
                "ottla_requests_total",
                "Requests received, by API.",
                lambda: {_api_name(key): count for key, count in self.requests.items()},
                label="api",
                kind="counter",
            ),
            counter("ottla_bytes_in_total", "Bytes of batches let in.", lambda: self.bytes_in),
            counter("ottla_bytes_out_total", "Bytes of batches sent.", lambda: self.bytes_out),
            counter(
                "ottla_batches_refused_total",
                "Batches that were not let in.",
                lambda: self.batches_refused,
            ),
            counter(
                "ottla_connections_accepted_total",
                "Connections accepted.",
                lambda: self.connections_accepted,
            ),
            counter(
                "ottla_connections_refused_total",
                "Connections refused because there were too many.",
                lambda: self.connections_refused,
            ),
            counter(
                "ottla_protocol_errors_total",
                "Connections closed because of what they sent.",
                lambda: self.protocol_errors,
            ),
            counter(
                "ottla_server_errors_total",
                "Requests that failed for a reason of the broker's own.",
                lambda: self.server_errors,
            ),
        ]


def _lines(gauge: Gauge) -> list[str]:
    lines = [f"# HELP {gauge.name} {gauge.help}", f"# TYPE {gauge.name} {gauge.kind}"]
    reading = gauge.read()
    if not isinstance(reading, Mapping):
        return [*lines, f"{gauge.name} {_number(reading)}"]
    assert gauge.label is not None, "several numbers need a label to tell them apart"
    shown = sorted(reading.items())[:LABEL_VALUES_MAX]
    lines += [
        f'{gauge.name}{{{gauge.label}="{_escaped(value)}"}} {_number(number)}'
        for value, number in shown
    ]
    if len(reading) > len(shown):
        rest = sum(reading.values()) - sum(number for _, number in shown)
        lines.append(f'{gauge.name}{{{gauge.label}="(others)"}} {_number(rest)}')
    return lines


def _histogram_lines(name: str, help: str, histogram: Histogram) -> list[str]:
    lines = [f"# HELP {name} {help}", f"# TYPE {name} histogram"]
    count = 0
    for bound, inside in zip((*histogram.bounds, "+Inf"), histogram.counts, strict=True):
        count += inside
        lines.append(f'{name}_bucket{{le="{bound}"}} {count}')
    return [*lines, f"{name}_sum {_number(histogram.total)}", f"{name}_count {count}"]


def _api_name(key: int) -> str:
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
