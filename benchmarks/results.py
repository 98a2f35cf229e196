"""What was measured: samples of single rounds, and their medians by case and contender."""

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

GB, MB = 1e9, 1e6


def rates(report: Mapping[str, float]) -> dict[str, float]:
    """The metrics of one round, from what a load generator reported."""
    seconds, requests, moved = report["seconds"], report["requests"], report["bytes"]
    cpu = report["broker_cpu_s"]
    latencies = {name: report[name] for name in ("p50_us", "p99_us") if report[name]}
    return latencies | {
        "requests_per_s": requests / seconds,
        "records_per_s": report["records"] / seconds,
        "mb_per_s": moved / MB / seconds,
        "cpu_s_per_gb": cpu / (moved / GB),
        "cpu_us_per_request": cpu * 1e6 / requests,
        "cpu_cores": cpu / seconds,
        "client_cores": report["client_cpu_s"] / seconds,
    }


@dataclass(slots=True)
class Measured:
    """All rounds of one contender in one case."""

    rounds: list[dict[str, float]] = field(default_factory=list)

    def median(self, metric: str) -> float:
        return statistics.median(self.values(metric))

    def values(self, metric: str) -> list[float]:
        return [one[metric] for one in self.rounds if metric in one]

    def has(self, metric: str) -> bool:
        return any(metric in one for one in self.rounds)


@dataclass(slots=True)
class Case:
    """One thing that was measured, with the metric that stands for it."""

    name: str
    title: str
    metric: str
    by_contender: dict[str, Measured] = field(default_factory=dict)


class Results:
    """Everything measured in one run, by benchmark."""

    def __init__(self) -> None:
        self.benchmarks: dict[str, dict[str, Case]] = {}

    def note(
        self, benchmark: str, case: tuple[str, str, str], contender: str, one: dict[str, float]
    ) -> None:
        """Add one round; `case` is its name, title and metric."""
        cases = self.benchmarks.setdefault(benchmark, {})
        known = cases.setdefault(case[0], Case(*case))
        known.by_contender.setdefault(contender, Measured()).rounds.append(one)

    def median(self, case: str, contender: str, metric: str) -> float | None:
        for found in self.cases():
            measured = found.by_contender.get(contender)
            if found.name == case and measured is not None and measured.has(metric):
                return measured.median(metric)
        return None

    def cases(self) -> Iterator[Case]:
        for cases in self.benchmarks.values():
            yield from cases.values()

    def as_json(self) -> dict[str, object]:
        return {
            benchmark: {
                case.name: {
                    "title": case.title,
                    "metric": case.metric,
                    "rounds": {
                        name: measured.rounds for name, measured in case.by_contender.items()
                    },
                }
                for case in cases.values()
            }
            for benchmark, cases in self.benchmarks.items()
        }
