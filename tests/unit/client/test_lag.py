"""Lag in records and in time."""

from ottla.client.lag import Lag, find_lags
from ottla.model.types import TopicPartition
from ottla.records.record import Record, build_batch
from tests.unit.client.fake_broker import World

FIRST = TopicPartition("t", 0)


def write(world: World, *ages_ms: int, partition: int = 0) -> None:
    """Records as old as this, one batch each."""
    place = TopicPartition("t", partition)
    for age_ms in ages_ms:
        offset = world.broker.end[place]
        world.broker.log[place] += build_batch(
            [Record(offset, world.clock.wall() - age_ms, None, b"v")], base_offset=offset
        )
        world.broker.end[place] += 1


def test_the_lag_is_the_age_of_the_oldest_record_that_was_not_read() -> None:
    world = World()
    write(world, 90_000, 60_000, 30_000)

    async def work() -> None:
        lag = (await find_lags(world.cluster(), {FIRST: 1}))[FIRST]
        assert (lag.start_offset, lag.end_offset, lag.records) == (0, 3, 2)
        assert lag.ms is not None
        assert 60_000 <= lag.ms < 61_000

    world.run(work)


def test_who_has_read_all_is_not_behind() -> None:
    world = World()
    write(world, 90_000)

    async def work() -> None:
        assert await find_lags(world.cluster(), {FIRST: 1}) == {FIRST: Lag(0, 1, 0, 0)}

    world.run(work)


def test_where_nothing_is_committed_only_the_ends_are_known() -> None:
    world = World()
    write(world, 90_000)

    async def work() -> None:
        assert await find_lags(world.cluster(), {FIRST: None}) == {FIRST: Lag(0, 1)}

    world.run(work)


def test_each_partition_has_its_own() -> None:
    world = World()
    world.broker.topics["t"] = 2
    write(world, 10_000, 5_000)
    write(world, 40_000, partition=1)
    second = TopicPartition("t", 1)

    async def work() -> None:
        lags = await find_lags(world.cluster(), {FIRST: 1, second: 0})
        assert (lags[FIRST].records, lags[second].records) == (1, 1)
        assert 5 <= (lags[FIRST].ms or 0) // 1000 < 10
        assert (lags[second].ms or 0) // 1000 == 40

    world.run(work)


def test_a_topic_that_is_gone_and_a_partition_without_leader_are_unknown() -> None:
    world = World()
    world.broker.leaders["t", 0] = -1
    gone = TopicPartition("gone", 0)

    async def work() -> None:
        assert await find_lags(world.cluster(), {FIRST: 1, gone: 1}) == {FIRST: Lag(), gone: Lag()}

    world.run(work)


def test_a_clock_that_runs_ahead_makes_no_negative_lag() -> None:
    world = World()
    write(world, -5_000)

    async def work() -> None:
        assert (await find_lags(world.cluster(), {FIRST: 0}))[FIRST].ms == 0

    world.run(work)
