"""What the broker counts, and how Prometheus reads it.

The hot path adds to plain integers: `metrics.bytes_in += size`. Everything else, names, labels and
text, happens when someone scrapes. What is read off the broker's state at that moment is a gauge:
a callable that returns a number, or a number for each value of one label. The values of a label
are capped, so that no client can make the answer grow by inventing names.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from ottla.env.turns import Histogram
from ottla.protocol.apis import ApiKey

LABEL_VALUES_MAX: Final = 200

Reading = float | Mapping[str, float] | Histogram


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
    protocol_errors: int = 0
    server_errors: int = 0
    gauges: list[Gauge] = field(default_factory=list)

    def add_gauge(
        self, name: str, help: str, read: Callable[[], Reading], label: str | None = None
    ) -> None:
        """`read` returns a number, or with a label a number for each of its values."""
        self._add(Gauge(name, help, read, label))

    def add_counter(self, name: str, help: str, read: Callable[[], Reading]) -> None:
        """What only grows while the broker runs."""
        assert name.endswith("_total"), "as Prometheus names counters"
        self._add(Gauge(name, help, read, kind="counter"))

    def add_histogram(self, name: str, help: str, read: Callable[[], Histogram]) -> None:
        self._add(Gauge(name, help, read, kind="histogram"))

    def as_text(self) -> str:
        """Everything in Prometheus' text format."""
        lines: list[str] = []
        for gauge in (*self._counters(), *self.gauges):
            lines += _lines(gauge)
        return "\n".join(lines) + "\n"

    def _add(self, gauge: Gauge) -> None:
        assert gauge.name not in {known.name for known in self.gauges}, "one gauge, one name"
        self.gauges.append(gauge)

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
    if isinstance(reading, Histogram):
        return lines + _buckets(gauge.name, reading)
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


def _buckets(name: str, reading: Histogram) -> list[str]:
    """Each bucket counts the values up to its bound, those of the smaller buckets too."""
    bounds = [repr(bound) for bound in reading.bounds] + ["+Inf"]
    counts = list(accumulate(reading.counts))
    lines = [
        f'{name}_bucket{{le="{bound}"}} {count}'
        for bound, count in zip(bounds, counts, strict=True)
    ]
    return [*lines, f"{name}_sum {_number(reading.sum)}", f"{name}_count {counts[-1]}"]


def _api_name(key: int) -> str:
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
