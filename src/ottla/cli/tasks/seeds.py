"""Runs simulation seeds, one after the other or in parallel, and reports the results.

A single job prints a line per seed; parallel jobs show a bar, and lines only for failures.
"""

import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import typer

from ottla.simulation.plans.plan import Plan, without
from ottla.simulation.plans.swarm import plan_for
from ottla.simulation.runs.run import Report, simulate
from ottla.simulation.runs.running import Failure
from ottla.simulation.runs.shrinking import replay_command, shrink


@dataclass(frozen=True, slots=True)
class Outcome:
    seed: int
    is_good: bool
    text: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The run for each seed."""

    brokers: int = 1
    left_out: tuple[str, ...] = ()
    seconds: float | None = None
    is_traced: bool = False
    is_twice: bool = False

    def plan(self, seed: int) -> Plan:
        """The seed's plan without the excluded faults. ValueError for an unknown fault."""
        try:
            plan = without(plan_for(seed, self.brokers), self.left_out)
        except KeyError as error:
            raise ValueError(f"there is no kind of fault {error.args[0]!r}") from None
        return plan if self.seconds is None else replace(plan, seconds=self.seconds)


def run_seeds(wanted: Wanted, seeds: Sequence[int], jobs: int) -> int:
    """Run the seeds; returns the number of failures."""
    failed = 0
    if jobs == 1 or len(seeds) == 1:
        for outcome in map(partial(run_seed, wanted), seeds):
            failed += not outcome.is_good
            typer.echo(outcome.text, err=not outcome.is_good)
        return failed
    with ProcessPoolExecutor(jobs, initializer=_be_quiet) as pool, _bar(len(seeds)) as bar:
        for outcome in bar(pool.map(partial(run_seed, wanted), seeds, chunksize=1)):
            if not outcome.is_good:
                failed += 1
                typer.echo(outcome.text, err=True)
    typer.echo(f"{len(seeds)} seeds from {seeds[0]} on, {failed} failed")
    return failed


def run_seed(wanted: Wanted, seed: int) -> Outcome:
    """Run one seed; a failing plan is shrunk."""
    plan = wanted.plan(seed)
    try:
        report = _run(wanted, seed, plan)
        if wanted.is_twice and _run(replace(wanted, is_traced=False), seed, plan) != report:
            return Outcome(seed, False, f"seed {seed}: two runs differ")
    except Failure as failure:
        return Outcome(seed, False, _told(wanted, plan, failure))
    return Outcome(seed, True, line(report))


def _run(wanted: Wanted, seed: int, plan: Plan) -> Report:
    listener = typer.echo if wanted.is_traced else None
    replay = replay_command(plan, wanted.left_out)
    return simulate(seed, plan, listener=listener, replay=replay)


def _told(wanted: Wanted, plan: Plan, failure: Failure) -> str:
    if wanted.left_out or wanted.seconds is not None or wanted.is_traced:
        return str(failure)  # Already shrunk.
    found = shrink(failure, plan)
    if found.plan == plan:
        return str(failure)
    return f"{failure}\n  made smaller: {found.command}\n    {found.failure.reason}"


def line(report: Report) -> str:
    faults = " ".join(f"{name}={count}" for name, count in report.faults.items())
    return (
        f"seed {report.seed}: {report.digest}  {report.events} events in "
        f"{report.virtual_seconds:.1f} virtual s, {report.starts} starts, {report.acknowledged} of "
        f"{report.sent} acknowledged, {report.read} read, {report.commits} offsets committed"
        f", well after {report.healed_seconds:.1f} s  {faults}"
    )


def _be_quiet() -> None:
    logging.disable(logging.CRITICAL)


class _Silent:
    """No terminal: no bar."""

    def __call__(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        return iter(outcomes)


class _Moving:
    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), "seeds, about", TimeRemainingColumn())
        self.progress = Progress(*columns, console=Console(stderr=True))
        self._task = self.progress.add_task("", total=total)

    def __call__(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        for outcome in outcomes:
            self.progress.advance(self._task)
            yield outcome


@contextmanager
def _bar(total: int) -> Iterator[_Silent | _Moving]:
    if not sys.stderr.isatty():
        yield _Silent()
        return
    moving = _Moving(total)
    with moving.progress:
        yield moving
