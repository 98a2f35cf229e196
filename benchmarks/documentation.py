"""Puts a run's figures and charts into docs/performance.md, between its two marks."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "performance.md"
IMAGES = DOCS / "images"
SHOWN = ("ratios", "small", "batches")
START, END = "<!-- results -->\n", "<!-- end of results -->\n"


def publish(machine: Mapping[str, str], tables: str, charts: Sequence[Path]) -> None:
    before, _, rest = PAGE.read_text().partition(START)
    _, _, after = rest.partition(END)
    assert rest, f"{PAGE} has lost its marks"
    IMAGES.mkdir(exist_ok=True)
    shown = []
    for chart in charts:
        if chart.stem not in SHOWN:
            continue
        shutil.copyfile(chart, IMAGES / f"performance-{chart.name}")
        shown.append(f"![{chart.stem}](images/performance-{chart.name})\n")
    measured_on = (
        f"Measured {machine['date']} on {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_gb']} GB, Linux {machine['kernel']}, {machine['python']}; the load "
        f"generator ran on the same cores, and the load before the run was "
        f"{machine['load_before']}.\n"
    )
    parts = [START, measured_on, *shown, tables, END]
    PAGE.write_text(before + "\n".join(part.rstrip("\n") + "\n" for part in parts) + after)
