"""Thousands of cheap worlds from seeds: the pure quorum, and the replication of one partition.

`python -m tests.simulation.worlds quorum --first-seed 1 --count 2000` plays the stories of these
seeds on all cores, prints each that fails, and says where to go on: with `--first-seed`, a search
is resumed in portions. A single seed is printed with its traceback.
"""

# ruff: noqa: T201

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from os import cpu_count

from tests.simulation.quorum_world import World
from tests.unit.replication.partition_model import Model

PORTION = 20


def quorum(seed: int) -> None:
    World.swarm(seed).story()


def replication(seed: int) -> None:
    Model.swarm(seed).story()


STORIES: dict[str, Callable[[int], None]] = {"quorum": quorum, "replication": replication}


def play(story: Callable[[int], None], seeds: range) -> list[tuple[int, str]]:
    """The seeds that fail, each with its traceback."""
    failures = []
    for seed in seeds:
        try:
            story(seed)
        except Exception:  # noqa: BLE001  A bug may show as anything.
            failures.append((seed, traceback.format_exc()))
    return failures


def play_for(story: Callable[[int], None], cpu_s: float, *, at_least: int) -> int:
    """Play the seeds from 0 on until the time is over; how many were played."""
    end = time.thread_time() + cpu_s
    for seed in count():
        if seed >= at_least and time.thread_time() >= end:
            return seed
        try:
            story(seed)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise
    raise AssertionError("seeds do not end")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("world", choices=STORIES)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0: one per core")
    asked = parser.parse_args()
    failed, end = 0, asked.first_seed + asked.count
    with ProcessPoolExecutor(asked.jobs or cpu_count()) as pool:
        portions = list(_portions(asked.first_seed, end))
        for failures in pool.map(partial(play, STORIES[asked.world]), portions):
            for seed, text in failures:
                failed += 1
                print(f"seed {seed}: {text if asked.count == 1 else text.splitlines()[-1]}")
    print(f"{asked.count} stories, {failed} failed; go on with --first-seed {end}")
    return 1 if failed else 0


def _portions(first: int, end: int) -> Iterator[range]:
    for start in range(first, end, PORTION):
        yield range(start, min(start + PORTION, end))


if __name__ == "__main__":
    sys.exit(main())
