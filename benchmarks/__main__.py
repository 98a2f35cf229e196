"""`python -m benchmarks [name...]`: measure, print tables, draw charts, judge the budgets."""

import argparse
import json
import platform
import signal
import sys
from pathlib import Path

from rich.console import Console

from benchmarks import suites
from benchmarks.budgets import judge
from benchmarks.charts import draw
from benchmarks.documentation import publish
from benchmarks.machine import describe
from benchmarks.programs import LoadFailedError
from benchmarks.session import Options, Session
from benchmarks.tables import benchmark_table, budget_table, markdown

RESULTS = Path(__file__).parent / "results"
WIDTH_MIN = 130  # Narrower, a table cannot be read.


def main() -> int:
    arguments = parse()
    console = Console()
    console.width = max(console.width, WIDTH_MIN)
    if platform.system() != "Linux":
        console.print("The benchmarks run on Linux only: they read CPU and memory from /proc.")
        return 1
    machine = describe()
    console.print("  ".join(f"{key} {value}" for key, value in machine.items()))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # The brokers must not outlive us.
    session = Session(options_of(arguments), console)
    try:
        for name in arguments.names or suites.NAMES:
            console.rule(f"{name}: {suites.summary(name)}", align="left")
            session.benchmark = name
            try:
                suites.suite(name)(session)
            except LoadFailedError as error:
                console.print(f"{name} was not measured to its end: {error}", style="red")
            if name in session.results.benchmarks:
                console.print(benchmark_table(name, session.results))
    except KeyboardInterrupt:
        console.print("Stopped; what was measured until here follows.")
    finally:
        session.close()
    verdicts = judge(session.results)
    console.print(budget_table(verdicts))
    RESULTS.mkdir(exist_ok=True)
    everything = {"machine": machine, "results": session.results.as_json()}
    (RESULTS / "results.json").write_text(json.dumps(everything, indent=1))
    tables = markdown(session.results, verdicts)
    (RESULTS / "results.md").write_text(tables)
    charts = draw(session.results, RESULTS)
    if not charts:
        console.print("No charts: matplotlib is not installed (pip install matplotlib).")
    if arguments.docs:
        publish(machine, tables, charts, is_all=not arguments.names)
    console.print(f"Figures and charts are in {RESULTS}.")
    missed = [verdict for verdict in verdicts if not verdict.is_held]
    return 1 if arguments.check and missed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(suites.NAMES))
    parser.add_argument("--quick", action="store_true", help="short rounds: to see that it works")
    parser.add_argument("--check", action="store_true", help="fail if a budget is missed")
    parser.add_argument("--docs", action="store_true", help="put the results into the docs")
    parser.add_argument("--peers", default="ottla,kafka", help="the brokers (ottla,kafka)")
    parser.add_argument("--rounds", type=int, help="rounds of each contender (5)")
    parser.add_argument("--seconds", type=float, help="seconds of a round (1.2)")
    parser.add_argument("--port", type=int, default=21700, help="the first of 50 ports (21700)")
    parser.add_argument("--directory", type=Path, help="where data is kept while it runs")
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in suites.NAMES:
            parser.error(f"there is no benchmark {name}; there are {', '.join(suites.NAMES)}")
    return arguments


def options_of(arguments: argparse.Namespace) -> Options:
    options = Options(rounds=2, seconds=0.5, warm_seconds=2.0) if arguments.quick else Options()
    options.rounds = arguments.rounds or options.rounds
    options.seconds = arguments.seconds or options.seconds
    options.peers = tuple(arguments.peers.split(","))
    options.port = arguments.port
    options.directory = arguments.directory
    return options


if __name__ == "__main__":
    sys.exit(main())
