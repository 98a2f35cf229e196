"""`python -m tests.chaos [--minutes 5] [--seed N]`: three nodes, faults, clients, a verdict."""

import argparse
import random
import shutil
import sys
from pathlib import Path

from rich.console import Console

from tests.chaos.faults import Chaos
from tests.chaos.nodes import Nodes
from tests.chaos.run import NODES, SETTINGS, Run, log_clients
from tests.chaos.wiring import Loopback, Namespaces, Wiring, can_make_namespaces

DIRECTORY = Path("build/chaos")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long faults are made")
    parser.add_argument("--seconds", type=float, default=None, help="the same, in seconds")
    parser.add_argument("--seed", type=int, default=None, help="which faults, and when")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="histories, logs, data")
    parser.add_argument("--loopback", action="store_true", help="no namespaces, even as root")
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    seconds = 60 * arguments.minutes if arguments.seconds is None else arguments.seconds
    shutil.rmtree(arguments.directory, ignore_errors=True)
    run = Run("chaos", arguments.directory.resolve(), seed, Console())
    log_clients(arguments.directory)
    node_ids = range(1, NODES + 1)
    wiring: Wiring
    if arguments.loopback or not can_make_namespaces():
        wiring = Loopback(node_ids)
    else:
        wiring = Namespaces(node_ids)
    nodes = Nodes(run.data, wiring, NODES, SETTINGS)
    if not run.go(nodes, lambda nemesis: Chaos(nemesis, seconds).run()):
        return 1
    shutil.rmtree(run.data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
