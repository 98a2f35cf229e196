"""A run as a picture: when which node was hit, where nothing was acknowledged, and how much was."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ottla.simulation.history.operations import Key, Operation
from tests.chaos.faults import Fault
from tests.chaos.verdict import SECOND, Gap, moments

COLOURS = {
    "kill -9": "#c0392b",
    "SIGSTOP": "#e6b450",
    "partition": "#7d5ba6",
    "clean stop": "#1b6ca8",
    "power loss": "#222222",
}
ACKNOWLEDGED, READ, GAP = "#1b6ca8", "#6aa84f", "#c0392b"
DPI = 90


def draw(
    path: Path,
    operations: list[Operation],
    faults: Sequence[Fault],
    gaps: Sequence[Gap],
    title: str,
) -> Path | None:
    """Without matplotlib there is none."""
    try:
        import matplotlib as mpl
    except ImportError:
        return None
    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (nodes, partitions, rates) = pyplot.subplots(
        3, 1, figsize=(14, 6.5), sharex=True, height_ratios=[3, 3, 2]
    )
    acknowledged, read = moments(operations)
    _draw_faults(nodes, faults)
    _draw_gaps(partitions, acknowledged, gaps)
    _draw_rate(rates, acknowledged, ACKNOWLEDGED, "acknowledged")
    _draw_rate(rates, read, READ, "polls with records")
    rates.set_ylabel("per second")
    rates.set_xlabel("seconds")
    rates.legend(loc="upper right", fontsize=7)
    for axis in (nodes, partitions, rates):
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    nodes.set_title(title, fontsize=10, loc="left")
    figure.tight_layout()
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)
    return path


def _draw_faults(axis: Any, faults: Sequence[Fault]) -> None:  # noqa: ANN401
    node_ids = sorted({node_id for fault in faults for node_id in fault.node_ids})
    shown: set[str] = set()
    for fault in faults:
        began, ended = fault.began_ns / SECOND, fault.healed_ns / SECOND
        for node_id in fault.node_ids:
            label = None if fault.kind in shown else fault.kind
            shown.add(fault.kind)
            width = max(ended - began, 0.3)
            axis.barh(node_id, width, left=began, color=COLOURS[fault.kind], label=label)
    axis.set_yticks(node_ids, [f"node {node_id}" for node_id in node_ids])
    axis.invert_yaxis()
    if shown:
        axis.legend(loc="upper right", fontsize=7, ncols=len(shown))


def _draw_gaps(axis: Any, acknowledged: dict[Key, list[int]], gaps: Sequence[Gap]) -> None:  # noqa: ANN401
    """A dot for every acknowledgement, a bar where there was none for a second."""
    rows = {key: row for row, key in enumerate(sorted(acknowledged))}
    for key, times in acknowledged.items():
        places = [rows[key]] * len(times)
        axis.plot([at / SECOND for at in times], places, ",", color=ACKNOWLEDGED)
    for gap in gaps:
        began = gap.began_ns / SECOND
        axis.barh(rows[gap.key], gap.seconds, left=began, color=GAP, height=0.5, alpha=0.6)
        axis.text(began, rows[gap.key] - 0.32, f"{gap.seconds:.1f} s", fontsize=6, color=GAP)
    axis.set_yticks(list(rows.values()), list(rows))
    axis.invert_yaxis()


def _draw_rate(axis: Any, times_of: dict[Key, list[int]], colour: str, label: str) -> None:  # noqa: ANN401
    counts: dict[int, int] = {}
    for times in times_of.values():
        for at in times:
            counts[at // SECOND] = counts.get(at // SECOND, 0) + 1
    if counts:
        seconds = range(max(counts) + 1)
        axis.step(seconds, [counts.get(s, 0) for s in seconds], color=colour, label=label, lw=0.8)
