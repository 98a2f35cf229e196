import asyncio

from ottla.simulation.world.clock import WALL_START_MS, VirtualClock
from ottla.simulation.world.loop import VirtualLoop


def test_both_clocks_show_virtual_time_and_only_one_can_be_wrong() -> None:
    loop = VirtualLoop()
    clock = VirtualClock(loop)
    assert (clock.monotonic(), clock.wall()) == (0, WALL_START_MS)
    loop.run_until_complete(asyncio.sleep(1.5))
    loop.close()
    assert (clock.monotonic(), clock.wall()) == (1_500, WALL_START_MS + 1_500)
    clock.skew_ms = -10_000
    assert (clock.monotonic(), clock.wall()) == (1_500, WALL_START_MS - 8_500)
