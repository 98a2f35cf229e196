"""Puts a run's figures and charts into docs/performance.md, between its two marks.

A run of everything replaces all that is there. A run of some benchmarks replaces their parts, which
then say when and on what they were measured.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "performance.md"
IMAGES = DOCS / "images"
SHOWN = ("ratios", "small", "batches", "groups", "spark", "spark_kafka")
START, END = "<!-- results -->\n", "<!-- end of results -->\n"
BUDGETS = "budgets"


def publish(
    machine: Mapping[str, str], tables: str, charts: Sequence[Path], *, is_all: bool
) -> None:
    before, _, rest = PAGE.read_text().partition(START)
    shown, _, after = rest.partition(END)
    assert rest, f"{PAGE} has lost its marks"
    IMAGES.mkdir(exist_ok=True)
    measured_on = (
        f"Measured {machine['date']} on {machine['cores']} cores ({machine['cpu']}), "
        f"{machine['memory_gb']} GB, Linux {machine['kernel']}, {machine['python']}; the load "
        f"generator ran on the same cores, and the load before the run was "
        f"{machine['load_before']}.\n"
    )
    if is_all:
        images = [_image(chart) for chart in charts if chart.stem in SHOWN]
        parts = [measured_on, *images, tables]
    else:
        pictures = {chart.stem: _image(chart) for chart in charts if chart.stem in SHOWN[1:]}
        parts = [_with_parts(shown, tables, measured_on, pictures)]
    text = "\n".join(part.rstrip("\n") + "\n" for part in [START, *parts, END])
    PAGE.write_text(before + text + after)


def _image(chart: Path) -> str:
    shutil.copyfile(chart, IMAGES / f"performance-{chart.name}")
    return f"![{chart.stem}](images/performance-{chart.name})\n"


def _with_parts(shown: str, tables: str, measured_on: str, pictures: Mapping[str, str]) -> str:
    """What is shown, with the tables of these benchmarks in it, and what they say of budgets."""
    head, known = _parts(shown)
    budgets = _by_first_cell(known.pop(BUDGETS, ""))
    for name, table in _parts(tables)[1].items():
        if name == BUDGETS:
            budgets |= _by_first_cell(table)
        else:
            known[name] = f"\n{measured_on}\n{pictures.get(name, '')}{table}"
    known[BUDGETS] = "\n" + "\n".join(budgets.values())
    return head + "".join(f"### {name}\n{text.rstrip()}\n\n" for name, text in known.items())


def _by_first_cell(table: str) -> dict[str, str]:
    """The lines of a table, its heading too, by what stands first in each."""
    return {line.split("|")[1].strip(): line for line in table.splitlines() if "|" in line}


def _parts(text: str) -> tuple[str, dict[str, str]]:
    """What comes before the first heading, and what stands below each."""
    head, *rest = re.split(r"^### (\w+)\n", text, flags=re.MULTILINE)
    return head.strip("\n") + "\n\n", dict(zip(rest[::2], rest[1::2], strict=True))
