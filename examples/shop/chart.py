"""Throughput and lag over time, as a picture."""

from pathlib import Path

from examples.shop.watching import Watch


def draw(watch: Watch, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (above, below) = plt.subplots(2, 1, figsize=(11, 6.5), sharex=True)
    for topic, counts in watch.records.items():
        rates = [
            (after - before) / (later - sooner)
            for before, after, sooner, later in zip(
                counts, counts[1:], watch.seconds, watch.seconds[1:], strict=False
            )
        ]
        above.plot(watch.seconds[1 : len(rates) + 1], rates, label=topic)
    above.set_ylabel("records written per second")
    above.set_title("A shop around one log: throughput by topic, lag by group")
    for group, lags in watch.lags.items():
        known = [
            (second, lag)
            for second, lag in zip(watch.seconds, lags, strict=False)
            if lag is not None
        ]
        below.plot([second for second, _ in known], [lag for _, lag in known], label=group)
    below.set_ylabel("records not read yet")
    below.set_xlabel("seconds")
    for axes in (above, below):
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
        axes.grid(alpha=0.3)
        axes.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
