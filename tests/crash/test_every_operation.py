"""Storage is crashed at every single file operation of a workload, and recovered each time.

After a kill everything flushed must be there; after a power cut everything synced. What is there
beyond that must be a prefix of what was written, and producers must go on where it ends.
"""

import errno

import pytest

from ottla.simulation.world.disk import Crashed
from ottla.storage.run_marks import MOUNT_ID
from tests.crash.world import World

POWER_SEEDS = range(6)


def operations_of_workload() -> int:
    world = World(0)
    world.run()
    return world.disk.operations


OPERATIONS = operations_of_workload()


def crash(world: World, operation: int, *, power: bool) -> None:
    world.disk.crash_at = operation
    with pytest.raises(Crashed):
        world.run()
    if power:
        world.disk.cut_power()
    else:
        world.disk.kill()


def go_on(world: World) -> None:
    """The recovered directory is written to, synced, and crashed once more without loss."""
    assert world.directory is not None
    for log in list(world.directory.logs.values()):
        world.append(log, 2)
        world.append(log, 5)
        world.sync(log)
        world.append(log, 1)
    world.disk.kill()
    world.check(power_lost=False)


def test_the_workload_does_something_at_every_step() -> None:
    assert OPERATIONS > 150


@pytest.mark.parametrize("part", range(8))
def test_a_kill_at_any_operation_loses_nothing_flushed(part: int) -> None:
    for operation in range(1 + part, OPERATIONS + 1, 8):
        world = World(operation)
        crash(world, operation, power=False)
        world.check(power_lost=False)
        go_on(world)


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("seed", POWER_SEEDS)
def test_a_power_cut_at_any_operation_loses_nothing_synced(part: int, seed: int) -> None:
    for operation in range(1 + part, OPERATIONS + 1, 8):
        world = World(operation * 1000 + seed)
        crash(world, operation, power=True)
        world.check(power_lost=True)
        go_on(world)


@pytest.mark.parametrize("part", range(8))
def test_a_crash_while_recovering_from_a_crash_is_recovered_from(part: int) -> None:
    for operation in range(1 + part, OPERATIONS + 1, 8):
        world = World(operation * 7919)
        crash(world, operation, power=True)
        for _ in range(3):
            world.disk.crash_at = world.disk.operations + world.disk.random.randint(1, 12)
            try:
                world.open()
                break
            except Crashed:
                if world.disk.random.random() < 0.5:
                    world.disk.cut_power()
                else:
                    world.disk.kill()
        world.disk.kill()
        world.check(power_lost=True)
        go_on(world)


def failing_file(operation: int) -> str:
    """What the operation works on, told by a failure that nobody may pass over."""
    world = World(operation)
    world.disk.fail_at = (operation, errno.EIO)
    with pytest.raises(OSError, match="simulated") as failure:
        world.run()
    name = str(failure.value.filename).rpartition("/")[2]
    return name.removesuffix(".tmp")


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("part", range(8))
def test_an_operation_that_fails_leaves_what_was_flushed_and_nothing_else(
    part: int, code: int
) -> None:
    for operation in range(1 + part, OPERATIONS + 1, 8):
        world = World(operation)
        world.disk.fail_at = (operation, code)
        try:
            world.run()
        except OSError as error:
            assert "simulated" in str(error)  # noqa: PT017
        else:
            # Only the note of the mount may lack room: without it, a crash counts as power loss.
            assert (code, failing_file(operation)) == (errno.ENOSPC, MOUNT_ID)
        world.disk.kill()
        world.check(power_lost=False)
        go_on(world)
