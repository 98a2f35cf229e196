"""Results as small pictures: one per benchmark, and one of all ratios to Apache Kafka."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.budgets import CONNECTOR, CONNECTOR_TUNED, KAFKA, OURS
from benchmarks.results import Case, Results
from benchmarks.tables import NAMES, UNITS, number_text

COLOURS = {
    OURS: "#1b6ca8",
    KAFKA: "#b0b0b0",
    CONNECTOR: "#b0b0b0",
    CONNECTOR_TUNED: "#8a8a8a",
}
LIMIT_COLOUR = "#e6b450"
DPI = 80
COLUMNS_MAX = 7
LESS_IS_BETTER = {
    *("p50_us", "p99_us", "start_s", "resident_mb", "added_mb", "cpu_s_per_gb"),
    *("cpu_us_per_request", "stable_s", "pause_s", "load_s", "gap_s"),
}


def draw(results: Results, directory: Path) -> list[Path]:
    """Write the pictures; their paths. Without matplotlib there are none."""
    try:
        import matplotlib as mpl
    except ImportError:
        return []
    mpl.use("Agg")
    directory.mkdir(parents=True, exist_ok=True)
    compared = [case for case in results.cases() if {OURS, KAFKA} <= case.by_contender.keys()]
    drawn = [_ratios(compared, directory / "ratios.png")] if compared else []
    drawn += [
        _benchmark(name, list(cases.values()), directory / f"{name}.png")
        for name, cases in results.benchmarks.items()
    ]
    return drawn


def _benchmark(name: str, cases: Sequence[Case], path: Path) -> Path:
    """Each case has its own scale; below it the CPU that the same work cost, where measured."""
    from matplotlib import pyplot

    has_cpu = any(one.has("cpu_s_per_gb") for c in cases for one in c.by_contender.values())
    wide = min(len(cases), COLUMNS_MAX)
    lines = -(-len(cases) // wide)
    tall = lines * (2 if has_cpu else 1)
    size = (1 + 2.3 * wide, 0.4 + 2.3 * tall)
    figure, axes = pyplot.subplots(tall, wide, figsize=size, squeeze=False)
    for spare in axes.flat:
        spare.set_axis_off()
    for number, case in enumerate(cases):
        line, column = divmod(number, wide)
        row = line * (2 if has_cpu else 1)
        _bars(axes[row][column], case, case.metric)
        axes[row][column].set_title(case.title, fontsize=8)
        if has_cpu:
            _bars(axes[row + 1][column], case, "cpu_s_per_gb")
    figure.suptitle(name, fontsize=10, x=0.01, ha="left")
    figure.tight_layout()
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)
    return path


def _bars(axis: Any, case: Case, metric: str) -> None:  # noqa: ANN401
    axis.set_axis_on()
    unit, scale = UNITS[metric]
    shown = {name: one for name, one in case.by_contender.items() if one.has(metric)}
    heights = [one.median(metric) * scale for one in shown.values()]
    colours = [COLOURS.get(name, LIMIT_COLOUR) for name in shown]
    bars = axis.bar([NAMES[name].replace(" ", "\n", 1) for name in shown], heights, color=colours)
    axis.bar_label(bars, [number_text(height) for height in heights], fontsize=7)
    axis.set_ylabel(unit, fontsize=7)
    axis.tick_params(labelsize=6)
    axis.margins(y=0.15)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _ratios(cases: Sequence[Case], path: Path) -> Path:
    """How many times better than Kafka each median is, whichever way better is."""
    from matplotlib import pyplot

    titles, ratios = [], []
    for case in cases:
        ours, kafka = (case.by_contender[name].median(case.metric) for name in (OURS, KAFKA))
        better, worse = (kafka, ours) if case.metric in LESS_IS_BETTER else (ours, kafka)
        if worse <= 0 or better <= 0:
            continue
        titles.append(f"{case.title}, {UNITS[case.metric][0]}")
        ratios.append(better / worse)
    figure, axis = pyplot.subplots(figsize=(8, 0.6 + 0.24 * len(titles)))
    colours = [COLOURS[OURS] if ratio >= 1 else "#c0504d" for ratio in ratios]
    bars = axis.barh(titles, ratios, color=colours)
    axis.bar_label(bars, [f" {ratio:.1f}x" for ratio in ratios], fontsize=7)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_title("Ottla beside Apache Kafka: times better", fontsize=9, loc="left")
    axis.tick_params(labelsize=7)
    axis.invert_yaxis()
    axis.margins(x=0.1)
    figure.tight_layout()
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)
    return path
