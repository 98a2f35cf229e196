"""Progress of the queries of a pipeline, from Spark's reports of micro-batches.

Pure: reports in, numbers out. Lag is the number of records between the brokers' end offsets and the
query's, as the source reports them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Offsets = dict[tuple[str, str], int]
EXECUTED: Final = "addBatch"  # The duration that only a micro-batch that ran has.


@dataclass(slots=True)
class QueryProgress:
    """One query since its start in this process."""

    name: str
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    batch_ms: int = 0
    lag: int | None = None  # None until the source has reported.
    _last_batch: int = -1
    _began: dict[int, Offsets] = field(default_factory=dict)
    _ends: dict[int, Offsets] = field(default_factory=dict)
    _latest: dict[int, Offsets] = field(default_factory=dict)

    def note(self, report: Mapping[str, Any]) -> None:
        """Add a report; a repeated one adds nothing, and that of an idle trigger only the lag.

        Spark gives an idle trigger the number of the next micro-batch.
        """
        durations = report.get("durationMs", {})
        if EXECUTED in durations and report["batchId"] > self._last_batch:
            self._last_batch = report["batchId"]
            self.batches += 1
            self.rows += int(report.get("numInputRows") or 0)
            self.rows_per_second = float(report.get("processedRowsPerSecond") or 0.0)
            self.batch_ms = int(durations.get("triggerExecution", 0))
        for index, source in enumerate(report.get("sources", ())):
            start, end = read_offsets(source.get("startOffset")), read_offsets(source["endOffset"])
            if end:
                self._began.setdefault(index, start)
                self._ends[index] = end
                self._latest[index] = read_offsets(source.get("latestOffset")) or end
        if self._ends:
            self.lag = sum(_missing(self._latest[i], end) for i, end in self._ends.items())

    def as_json(self) -> dict[str, object]:
        done = self.fraction
        return {
            "query": self.name,
            "batches": self.batches,
            "rows": self.rows,
            "rows_per_second": round(self.rows_per_second, 1),
            "batch_ms": self.batch_ms,
            "lag": self.lag,
            "done": None if done is None else round(done, 4),
        }

    @property
    def fraction(self) -> float | None:
        """Share of the available records read since the start; None if unknown."""
        if not self._ends or self.lag is None:
            return None
        done = sum(_missing(end, self._began[index]) for index, end in self._ends.items())
        return 1.0 if not self.lag else done / (done + self.lag)


def read_offsets(value: Any) -> Offsets:  # noqa: ANN401
    """Offsets in the format of our source; empty for any other source."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, Mapping) or not isinstance(value.get("topics"), Mapping):
        return {}
    return {
        (topic, partition): int(offset)
        for topic, entry in value["topics"].items()
        for partition, offset in entry["partitions"].items()
    }


def _missing(whole: Offsets, part: Offsets) -> int:
    return sum(max(0, offset - part.get(place, 0)) for place, offset in whole.items())
