"""Two tails of one slot: whatever the one that lost it still writes, each change is there once."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from ottla.testing import Broker
from tests.cdc.tail_process import World
from tests.cdc.test_interruptions import TABLES, Load
from tests.postgres import PostgresServer


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """One that may be paused."""
    with Broker(process=True) as broker:
        yield broker


@pytest.mark.timeout(120)
def test_tail_that_waited_for_the_slot_passes_over_what_its_owner_wrote_meanwhile(
    world: World,
) -> None:
    load = Load(world, seed=7)
    load.commit()
    world.catch_up("-p", "2")
    owner = world.start()
    world.wait_until_following(owner)
    waiting = world.start()
    world.wait_until_said("is active for PID")
    before = world.written(*TABLES)
    for _ in range(40):
        load.commit()
    while world.written(*TABLES) == before:
        assert owner.poll() is None, world.log.read_text()
    world.kill(owner)  # It has not confirmed much of what it wrote.
    for table in TABLES:
        world.wait_until_equal(table)
    assert world.kill(waiting, signal.SIGTERM) == 0, world.log.read_text()
    assert load.check() > 40


@pytest.mark.timeout(120)
def test_paused_tail_whose_slot_was_taken_over_writes_nothing_twice_when_it_resumes(
    server: PostgresServer, own_broker: Broker
) -> None:
    world = World(server, own_broker, "resumed")
    load = Load(world, seed=8)
    paused_broker = own_broker.pid
    assert paused_broker is not None
    try:
        load.commit()
        world.catch_up("-p", "2")
        former = world.start()
        world.wait_until_following(former)
        os.kill(paused_broker, signal.SIGSTOP)
        for _ in range(60):
            load.commit()
        time.sleep(1)  # The tail has read them. One batch is sent, the others wait for it.
        os.kill(former.pid, signal.SIGSTOP)
        os.kill(paused_broker, signal.SIGCONT)
        world.take_slot_away()
        successor = world.start()
        world.wait_until_following(successor)
        for table in TABLES:
            world.wait_until_equal(table)
        load.commit()
        os.kill(former.pid, signal.SIGCONT)
        world.wait_until_said("trying again")
        load.commit()
        world.kill(successor)
        load.commit()
        for table in TABLES:  # The resumed tail has got the slot back.
            world.wait_until_equal(table)
        assert world.kill(former, signal.SIGTERM) == 0, world.log.read_text()
        assert load.check() > 60
    finally:
        os.kill(paused_broker, signal.SIGCONT)
        world.close()


@pytest.mark.timeout(120)
def test_only_one_tail_takes_the_snapshot_of_a_new_slot(world: World) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    world.sql("INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i")
    tails = [world.start("-p", "1") for _ in range(2)]
    world.wait_until_said("following slot")
    world.wait_until_equal()
    assert len(world.messages()) == 20_000
    for tail in tails:
        world.kill(tail)
