"""Chart of throughput and lag over time: a line for each topic and each group."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from examples.shop.watch import Watch

TOPICS = ("#2a6f97", "#e07a1f", "#b23a48", "#6a994e")
GROUPS = ("#e07a1f", "#2a6f97", "#7a5195")  # Groups have the colour of the topic that they read.
INK, SOFT = "#22303c", "#8a97a3"
SMOOTHED_OVER = 3  # Samples: Spark writes in bursts, a micro-batch at a time.


def draw(watch: Watch, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": SOFT})
    figure, (above, below) = plt.subplots(2, 1, figsize=(11, 6.8), sharex=True)
    rates = {topic: _rates(watch.seconds, counts) for topic, counts in watch.records.items()}
    _panel(above, "Records written per second, by topic", rates, TOPICS)
    lags = {group: _lags(watch, group) for group in watch.lags}
    _panel(below, "Records not read yet, by group", lags, GROUPS)
    below.set_xlabel("seconds")
    for axes in (above, below):
        if watch.quiet_since is not None:
            axes.axvspan(watch.quiet_since, watch.seconds[-1], color="#eef1f4", lw=0, zorder=0)
        axes.set_xlim(0, watch.seconds[-1])
    if watch.quiet_since is not None:
        place = {"xycoords": ("data", "axes fraction"), "fontsize": 9, "color": SOFT}
        above.annotate("no more orders", (watch.quiet_since, 1.02), **place)
    figure.text(0.06, 0.965, "A shop around one log", fontsize=16, fontweight="bold")
    total = sum(counts[-1] for counts in watch.records.values() if counts)
    subtitle = f"{total:,} records in {len(watch.records)} topics, on one machine"
    figure.text(0.06, 0.93, subtitle, fontsize=10, color=SOFT)
    figure.subplots_adjust(left=0.06, right=0.79, top=0.86, bottom=0.08, hspace=0.28)
    figure.savefig(path, dpi=140)
    plt.close(figure)


def _panel(
    axes: Any, title: str, lines: dict[str, list[tuple[float, float]]], colours: Sequence[str]
) -> None:
    axes.set_title(title, loc="left", fontsize=11, color=INK, pad=8)
    for (name, points), colour in zip(lines.items(), colours, strict=False):
        seconds, values = [x for x, _ in points], [y for _, y in points]
        axes.plot(seconds, values, color=colour, lw=2, solid_capstyle="round", label=name)
        axes.fill_between(seconds, values, color=colour, alpha=0.10, lw=0)
    axes.set_ylim(bottom=0)
    axes.margins(y=0.1)
    axes.grid(axis="y", color="#e3e7eb", lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=SOFT)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#c6ced6")
    legend = axes.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1.03), frameon=False, handlelength=1.2
    )
    for text, colour in zip(legend.get_texts(), colours, strict=False):
        text.set_color(colour)
        text.set_fontweight("bold")


def _rates(seconds: Sequence[float], counts: Sequence[int]) -> list[tuple[float, float]]:
    """Rates per second, over several samples."""
    points = list(zip(seconds, counts, strict=False))
    return [
        (later[0], (later[1] - sooner[1]) / (later[0] - sooner[0]))
        for sooner, later in zip(points, points[SMOOTHED_OVER:], strict=False)
    ]


def _lags(watch: Watch, group: str) -> list[tuple[float, float]]:
    looks = zip(watch.seconds, watch.lags[group], strict=False)
    return [(second, lag) for second, lag in looks if lag is not None]
