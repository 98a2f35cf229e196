"""`ottla simulate`: a broker, its clients and its misfortunes in virtual time, from a seed."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ottla.simulation.run import Report


def simulate(
    seed: Annotated[int, typer.Option("--seed", "-s", help="The first seed to run.")] = 0,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, help="How many seeds to run, one by one.")
    ] = 1,
    is_traced: Annotated[
        bool, typer.Option("--trace", "-t", help="Print every event as it happens.")
    ] = False,
    is_twice: Annotated[
        bool, typer.Option("--twice", help="Run each seed twice and compare what happened.")
    ] = False,
    is_logged: Annotated[
        bool, typer.Option("--log", help="Print the broker's own log lines as well.")
    ] = False,
) -> None:
    """Run the whole broker in virtual time, with faults, and check what it promises.

    The same seed gives the same run. A seed that fails names what was broken.

    \b
    Examples:
      ottla simulate --seed 42
      ottla simulate --seed 42 --trace
      ottla simulate --seed 1 --count 100 --twice
    """
    _hash_alike()
    import logging

    from ottla.simulation.run import Failure, simulate

    if not is_logged:
        logging.disable(logging.CRITICAL)
    failed = 0
    for number in range(seed, seed + count):
        listener = typer.echo if is_traced else None
        try:
            report = simulate(number, listener=listener)
            if is_twice and simulate(number) != report:
                typer.echo(f"seed {number}: two runs differ", err=True)
                failed += 1
        except Failure as failure:
            typer.echo(str(failure), err=True)
            failed += 1
        else:
            typer.echo(_line(report))
    if failed:
        raise typer.Exit(1)


def _hash_alike() -> None:
    """Start over with fixed hashes, so that sets are walked in the same order each time."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        arguments = [sys.executable, "-m", "ottla.cli.main", *sys.argv[1:]]
        os.execv(sys.executable, arguments)  # noqa: S606


def _line(report: "Report") -> str:
    faults = " ".join(f"{name}={count}" for name, count in report.faults.items())
    return (
        f"seed {report.seed}: {report.digest}  {report.events} events in "
        f"{report.virtual_seconds:.1f} virtual s, {report.starts} starts, {report.acknowledged} of "
        f"{report.sent} acknowledged, {report.read} read, {report.commits} offsets committed  "
        f"{faults}"
    )
