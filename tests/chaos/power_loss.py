"""`python -m tests.chaos.power_loss [--rounds 24] [--seed N]`: nodes whose disks lose their power.

Three parts, each with a cluster of its own:

- synced: `log.flush.interval.messages=1`. Whoever loses power, all at once too, every acknowledged
  record is there afterwards.
- cached: the default. One node at a time loses power, also in the order that has split others: the
  records survive, as one replica in sync kept its power.
- everyone: the default, and all lose power at once. What was acknowledged last may be gone, and
  then a node says so; what is left is one history, the same for everyone.
"""

import argparse
import random
import shutil
import sys
from pathlib import Path

from rich.console import Console

from tests.chaos.everyone import lose_everyone
from tests.chaos.images import Images, can_lose_power
from tests.chaos.nodes import Nodes
from tests.chaos.power import PowerCuts
from tests.chaos.run import NODES, SETTINGS, Run, log_clients
from tests.chaos.wiring import Loopback

DIRECTORY = Path("build/power-loss")
PARTS = ("synced", "cached", "everyone")
SYNCED = {**SETTINGS, "log.flush.interval.messages": "1"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.power_loss", description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, help="which of them")
    parser.add_argument("--rounds", type=int, default=24, help="power cuts, over all parts")
    parser.add_argument("--seed", type=int, default=None, help="who loses power, and when")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="histories, logs, images")
    arguments = parser.parse_args()
    console = Console()
    if reason := can_lose_power():
        console.print(f"Skipped: {reason}")
        return 0
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    directory = arguments.directory.resolve()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    log_clients(directory)
    rounds = max(1, arguments.rounds // len(arguments.parts))
    is_good = True
    for name in arguments.parts:
        console.rule(f"{name}: {rounds} rounds", align="left")
        is_good &= _part(name, directory / name, seed, console, rounds)
    return 0 if is_good else 1


def _part(name: str, directory: Path, seed: int, console: Console, rounds: int) -> bool:
    run = Run(name, directory, seed, console)
    node_ids = range(1, NODES + 1)
    images = Images(run.data, node_ids)
    try:
        nodes = Nodes(run.data, Loopback(node_ids), NODES, SYNCED if name == "synced" else SETTINGS)
        if name == "everyone":
            is_good = lose_everyone(run, nodes, images, rounds)
        else:
            is_all = name == "synced"
            is_good = run.go(
                nodes, lambda nemesis: PowerCuts(nemesis, images).run(rounds, with_all=is_all)
            )
    finally:
        images.close()
    if is_good:
        shutil.rmtree(run.data)
    return is_good


if __name__ == "__main__":
    sys.exit(main())
