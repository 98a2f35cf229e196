"""A tail that was truncated stays truncated: no later power cut brings back part of it.

The batches written in its place have the size of the old ones, so that old ones would follow them
without a gap if the truncation were lost and the new bytes were not.
"""

from collections.abc import Callable

import pytest

from ottla.simulation.world.disk import SimulatedDisk
from ottla.storage.config import LogConfig
from ottla.storage.log import Log
from tests.unit.storage.making import DIRECTORY, make_batch, make_disk, open_log, put, read_all

CONFIG = LogConfig(segment_bytes=1 << 20)
PATH = f"{DIRECTORY}/{0:020d}.log"
SIZE = make_batch().size
KEPT = 3
SEEDS = range(40)


def opened(disk: SimulatedDisk) -> Log:
    return open_log(disk, CONFIG, clean=False, power_lost=True)


def recovered_after_power_loss(disk: SimulatedDisk) -> Log:
    """A power cut left a hole in what was not synced, and whole batches behind it."""
    disk.flip_bit(PATH, KEPT * SIZE + SIZE - 1)
    disk.kill()
    return opened(disk)


def truncated(disk: SimulatedDisk) -> Log:
    disk.kill()
    log = opened(disk)
    log.truncate_to(KEPT)
    return log


@pytest.mark.parametrize("cut", [recovered_after_power_loss, truncated])
def test_power_cut_after_a_truncation_does_not_bring_back_the_old_tail(
    cut: Callable[[SimulatedDisk], Log],
) -> None:
    ends = set()
    for seed in SEEDS:
        disk = make_disk(seed)
        log = open_log(disk, CONFIG)
        for _ in range(8):
            put(log, make_batch(), leader_epoch=1)
        log.sync()
        log = cut(disk)
        assert log.end_offset == KEPT
        put(log, make_batch(), leader_epoch=2)
        disk.cut_power()
        found = [(batch.base_offset, batch.leader_epoch) for batch in read_all(opened(disk))]
        whole = [(0, 1), (1, 1), (2, 1), (3, 2)]
        assert found == whole[: len(found)]
        assert len(found) >= KEPT
        ends.add(len(found))
    assert ends == {KEPT, KEPT + 1}, "both outcomes of the unsynced append are seen"
