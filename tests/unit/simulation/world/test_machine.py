"""The simulated machine: a real broker on it, killed, starved of power, stopped and started."""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Iterator
from random import Random

import pytest

from ottla.simulation.history.history import Violation
from ottla.simulation.plans.plan import Plan, Rates
from ottla.simulation.world.loop import VirtualLoop
from ottla.simulation.world.machine import Machine
from ottla.simulation.world.network import SimulatedNetwork
from ottla.simulation.world.nodes import PORT, Nodes
from ottla.simulation.world.process import task_factory
from ottla.simulation.world.trace import Trace
from tests.unit.simulation.small import small_plan
from tests.unit.simulation.streams import Recorder


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(world: Callable[[Machine], Awaitable[None]], plan: Plan | None = None) -> list[object]:
    """What came to the loop's ears, that nobody caught."""
    loop = VirtualLoop()
    loop.set_task_factory(task_factory)
    errors: list[object] = []
    loop.set_exception_handler(lambda _, context: errors.append(context.get("exception")))
    network = SimulatedNetwork(loop, Random(1), Trace(lambda: loop.now_ns))
    (machine,) = Nodes(plan or small_plan(), loop, network).all
    try:
        loop.run_until_complete(world(machine))
    finally:
        machine.end()
        loop.close()
    return errors


def test_the_broker_serves_on_its_host() -> None:
    async def world(machine: Machine) -> None:
        broker = await machine.wait_serving()
        assert broker.addresses["PLAINTEXT"] == (machine.host, PORT)
        await machine._network.host("client").connect(machine.host, PORT, Recorder)
        await asyncio.sleep(0.001)
        assert len(broker.connections.open) == 1

    assert run(world) == []


@pytest.mark.parametrize("death", ["kill", "cut_power"])
def test_what_was_formatted_outlives_every_death(death: str) -> None:
    async def world(machine: Machine) -> None:
        cluster_id = (await machine.wait_serving()).image.cluster_id
        for _ in range(3):
            getattr(machine, death)(100)
            assert machine.broker is None
            machine.supervise()
            assert machine.process is None, "it stays down for as long as it was told"
            await asyncio.sleep(0.2)
            assert (await machine.wait_serving()).image.cluster_id == cluster_id
        assert machine.starts == 4

    assert run(world) == []


def test_a_clean_stop_leaves_its_mark() -> None:
    async def world(machine: Machine) -> None:
        await machine.wait_serving()
        assert not machine.disk.exists("/data-0/.kafka_cleanshutdown")
        await machine.stop()
        assert machine.disk.exists("/data-0/.kafka_cleanshutdown")
        await machine.wait_serving()
        await machine.stop()
        await machine.stop()  # Which is the same as stopping it once.

    assert run(world) == []


def test_the_process_dies_within_a_disk_operation() -> None:
    async def world(machine: Machine) -> None:
        machine.supervise()
        await asyncio.sleep(0)
        machine.disk.crash_at = machine.disk.operations + 5
        await asyncio.sleep(0.1)
        assert machine.process is None
        await asyncio.sleep(1)
        await machine.wait_serving()
        assert machine.starts == 2

    run(world)


def test_a_sick_disk_explains_an_end_and_nothing_else_does() -> None:
    async def world(machine: Machine) -> None:
        machine.disk.fail("append", errno.EIO, path_contains="__cluster_metadata")
        machine.supervise()
        await asyncio.sleep(1)
        assert machine.process is None
        await machine.wait_serving()

    assert run(world, small_plan(rates=Rates(disk_error=1.0))) == []
    (error, *_) = run(world)
    assert isinstance(error, Violation)


@pytest.mark.parametrize("loses_power", [False, True], ids=["killed", "without power"])
def test_a_first_start_that_was_cut_off_anywhere_is_followed_by_one_that_is_not(
    loses_power: bool,
) -> None:
    operations: list[int] = []

    async def count(machine: Machine) -> None:
        await machine.wait_serving()
        operations.append(machine.disk.operations)

    run(count)
    assert operations[0] > 30
    for number in range(1, operations[0]):

        async def world(machine: Machine, number: int = number) -> None:
            machine.supervise()
            machine.disk.crash_at = number
            await asyncio.sleep(0.1)
            if loses_power:
                machine.cut_power(0)
            await machine.wait_serving()

        run(world)
