"""The tables that a run ends with."""

from collections import Counter

from rich.table import Table

from ottla.simulation.history.operations import Operation, Outcome
from tests.chaos.verdict import BACK_SECONDS_MAX, SECOND, Verdict


def operations_table(operations: list[Operation]) -> Table:
    counts = Counter((operation.kind, operation.outcome) for operation in operations)
    table = Table("operations", *(outcome.value for outcome in Outcome), title_justify="left")
    for kind in sorted({kind for kind, _ in counts}):
        table.add_row(kind.value, *(f"{counts[kind, outcome]:,}" for outcome in Outcome))
    return table


def faults_table(verdict: Verdict) -> Table:
    table = Table("at", "fault", "held", "longest gap", "back after")
    for outcome in verdict.outcomes:
        fault, back = outcome.fault, outcome.back_seconds
        is_late = back is None or back > BACK_SECONDS_MAX
        shown = "never" if back is None else f"{back:.1f} s"
        table.add_row(
            f"{fault.began_ns / SECOND:.0f} s",
            fault.what,
            f"{(fault.healed_ns - fault.began_ns) / SECOND:.1f} s",
            f"{outcome.gap_seconds:.1f} s",
            f"[red]{shown}" if is_late else shown,
        )
    found = verdict.report.anomalies.items()
    table.caption = ", ".join(f"{name}: {f.count}" for name, f in found) or "no anomaly"
    return table
