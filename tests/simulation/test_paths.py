"""Seeds of a cluster take every path of the table in docs/internals/simulation.md."""

import logging
from collections.abc import Iterator

import pytest

from ottla.simulation.plans.swarm import plan_for
from ottla.simulation.runs.run import simulate
from tests.simulation.paths import PATHS, count_paths

# Six seeds that together take them all; plans change, then others have to.
KNOWN = (11, 20, 28, 43, 8, 0)
SEEDS = (*KNOWN, *(seed for seed in range(100) if seed not in KNOWN))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.timeout(600)
def test_a_hundred_seeds_take_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends as soon as all were taken."""
    counts = count_paths(monkeypatch)
    for seed in SEEDS:
        simulate(seed, plan_for(seed, 3))
        if all(counts[path] for path in PATHS):
            return
    missing = [path for path in PATHS if not counts[path]]
    pytest.fail(f"no seed takes these paths: {missing}")
