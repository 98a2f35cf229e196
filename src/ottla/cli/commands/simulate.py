"""`ottla simulate`: brokers and clients with faults in virtual time, from a seed."""

import os
import sys
from typing import Annotated

import typer

from ottla.cli.tool import Tool

app = Tool("simulate")


@app.command()
def simulate(
    seed: Annotated[
        int, typer.Option("--seed", "-s", metavar="N", help="The first seed to run.")
    ] = 0,
    count: Annotated[
        int, typer.Option("--count", "-n", metavar="N", min=1, help="How many seeds to run.")
    ] = 1,
    brokers: Annotated[
        int,
        typer.Option(
            "--brokers", "-b", metavar="N", min=1, help="One broker, or a cluster of so many."
        ),
    ] = 1,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", "-j", metavar="N", min=0, help="So many at a time; 0: one on each core."
        ),
    ] = 1,
    left_out: Annotated[
        list[str] | None,
        typer.Option(
            "--without", metavar="FAULT", help="Leave out a kind of fault, or of clients."
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="SECONDS",
            help="Virtual seconds with faults, instead of the seed's.",
        ),
    ] = None,
    is_traced: Annotated[
        bool, typer.Option("--trace", "-t", help="Print every event as it happens.")
    ] = False,
    is_twice: Annotated[
        bool, typer.Option("--twice", help="Run each seed twice and compare what happened.")
    ] = False,
    is_logged: Annotated[
        bool, typer.Option("--log", help="Print the brokers' own log lines as well.")
    ] = False,
) -> None:
    """Run whole brokers in virtual time, with faults, and check what they promise.

    The same seed gives the same run. A seed that fails names what was broken, is made
    smaller, and says how to see it again.

    \b
    Examples:
      ottla simulate --seed 42
      ottla simulate --brokers 3 --seed 42 --trace
      ottla simulate --brokers 3 --count 1000 --jobs 0
    """
    _hash_alike()
    import logging

    from ottla.cli.tasks.seeds import Wanted, run_seeds

    if not is_logged:
        logging.disable(logging.CRITICAL)
    wanted = Wanted(brokers, tuple(left_out or ()), seconds, is_traced=is_traced, is_twice=is_twice)
    try:
        wanted.plan(seed)
    except (KeyError, ValueError) as error:
        raise typer.BadParameter(str(error.args[0])) from None
    if run_seeds(wanted, range(seed, seed + count), jobs or os.cpu_count() or 1):
        raise typer.Exit(1)


def _hash_alike() -> None:
    """Restart the process with fixed hashes, so that sets iterate in the same order each time."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        arguments = [sys.executable, "-m", "ottla.cli.main", *sys.argv[1:]]
        os.execv(sys.executable, arguments)  # noqa: S606
