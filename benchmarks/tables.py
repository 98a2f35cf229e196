"""Results for the terminal, and as Markdown for the documentation."""

from collections.abc import Sequence

from rich.table import Table

from benchmarks.budgets import CONNECTOR, CONNECTOR_TUNED, KAFKA, OURS, Verdict
from benchmarks.limit_servers import LIMITS
from benchmarks.results import Case, Results

UNITS = {
    "requests_per_s": ("requests/s", 1.0),
    "records_per_s": ("records/s", 1.0),
    "mb_per_s": ("MB/s", 1.0),
    "p50_us": ("p50 ms", 1e-3),
    "p99_us": ("p99 ms", 1e-3),
    "cpu_s_per_gb": ("CPU s/GB", 1.0),
    "cpu_us_per_request": ("CPU us/req", 1.0),
    "cpu_cores": ("cores", 1.0),
    "start_s": ("start s", 1.0),
    "format_s": ("format s", 1.0),
    "idle_mb": ("idle MB", 1.0),
    "resident_mb": ("resident MB", 1.0),
    "added_mb": ("added MB", 1.0),
    "threads": ("threads", 1.0),
    "stable_s": ("s until stable", 1.0),
    "pause_s": ("longest pause ms", 1e3),
    "load_s": ("s until served", 1.0),
    "gap_s": ("longest gap ms", 1e3),
    "consumer_gap_s": ("consumer's gap ms", 1e3),
    "cpu_s": ("CPU s", 1.0),
    "requests_per_batch": ("requests/batch", 1.0),
    "list_offsets_per_batch": ("ListOffsets/batch", 1.0),
}
BESIDE = (
    *("p50_us", "p99_us", "cpu_us_per_request", "cpu_s_per_gb", "idle_mb", "threads", "cpu_s"),
    "consumer_gap_s",
    *("start_s", "resident_mb", "requests_per_batch", "list_offsets_per_batch"),
)
NAMES = {
    OURS: "Ottla",
    KAFKA: "Kafka",
    CONNECTOR: "Spark's connector",
    CONNECTOR_TUNED: "Spark's, tuned",
    **LIMITS,
}
Rows = list[list[str]]


def heading(cases: Sequence[Case]) -> list[str]:
    """Column titles: the metrics beside the main one only where someone has them."""
    is_spark = any(CONNECTOR in case.by_contender for case in cases)
    return [
        "case",
        "contender",
        "median",
        "range",
        "of Spark's" if is_spark else "of Kafka",
        *(UNITS[m][0] for m in _beside(cases)),
    ]


def rows(cases: Sequence[Case]) -> Rows:
    beside = _beside(cases)
    made: Rows = []
    for case in cases:
        unit, scale = UNITS[case.metric]
        base_name = CONNECTOR if CONNECTOR in case.by_contender else KAFKA
        base = case.by_contender.get(base_name)
        for number, (name, measured) in enumerate(case.by_contender.items()):
            values = [value * scale for value in measured.values(case.metric)]
            ratio = ""
            if base is not None and name != base_name and base.median(case.metric):
                ratio = f"{measured.median(case.metric) / base.median(case.metric):.2f}x"
            made.append(
                [
                    f"{case.title}: {unit}" if number == 0 else "",
                    NAMES[name],
                    number_text(measured.median(case.metric) * scale),
                    f"{number_text(min(values))} - {number_text(max(values))}",
                    ratio,
                    *(
                        number_text(measured.median(m) * UNITS[m][1]) if measured.has(m) else ""
                        for m in beside
                    ),
                ]
            )
    return made


def benchmark_table(name: str, results: Results) -> Table:
    cases = list(results.benchmarks[name].values())
    table = Table(title=name, title_justify="left")
    for number, title in enumerate(heading(cases)):
        table.add_column(title, justify="left" if number < 2 else "right")
    for number, row in enumerate(rows(cases)):
        if row[0] and number:
            table.add_section()
        table.add_row(*row, style="bold" if row[1] == NAMES[OURS] else None)
    return table


def budget_table(verdicts: Sequence[Verdict]) -> Table:
    table = Table(title="budgets", title_justify="left")
    for number, title in enumerate(("what", "measured", "bound", "")):
        table.add_column(title, justify="right" if number in (1, 2) else "left")
    for verdict in verdicts:
        mark = "[green]held[/green]" if verdict.is_held else "[red]missed[/red]"
        table.add_row(verdict.budget.what, number_text(verdict.measured), verdict.bound, mark)
    return table


def markdown(results: Results, verdicts: Sequence[Verdict]) -> str:
    parts = []
    for name, by_name in results.benchmarks.items():
        cases = list(by_name.values())
        parts.append(f"### {name}\n\n{_markdown_table(heading(cases), rows(cases))}")
    judged = [
        [one.budget.what, number_text(one.measured), one.bound, "held" if one.is_held else "missed"]
        for one in verdicts
    ]
    parts.append(f"### budgets\n\n{_markdown_table(['what', 'measured', 'bound', ''], judged)}")
    return "\n".join(parts)


def number_text(value: float) -> str:
    """Three digits or so: no more was measured."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _beside(cases: Sequence[Case]) -> list[str]:
    def anyone_has(metric: str) -> bool:
        return any(one.has(metric) for case in cases for one in case.by_contender.values())

    return [metric for metric in BESIDE if anyone_has(metric)]


def _markdown_table(titles: Sequence[str], body: Rows) -> str:
    lines = [titles, ["---"] * len(titles), *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
