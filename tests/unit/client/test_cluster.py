"""How a client finds brokers and leaders, and how long it tries."""

import itertools

import pytest

from ottla.client.cluster import ClientSettings
from ottla.client.errors import CannotConnect, Refused
from ottla.client.metadata import UnknownPartition, UnknownTopic
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, TopicPartition
from ottla.protocol.apis import ApiKey
from tests.unit.client.fake_broker import HANG_UP, World


def test_the_next_address_is_tried_when_the_first_does_not_answer() -> None:
    world = World()

    async def work() -> None:
        cluster = world.cluster("nobody", "broker1")
        connection = await cluster.any_broker()
        assert connection.address.host == "broker1"

    world.run(work)


def test_that_nobody_answers_is_told_at_once() -> None:
    world = World()

    async def work() -> None:
        with pytest.raises(CannotConnect, match="nobody:9092"):
            await world.cluster("nobody", "nobody2").topic("t")
        assert world.clock.monotonic() < 100

    world.run(work)


def test_a_leader_is_found_by_metadata_and_its_connection_is_shared() -> None:
    world = World()
    world.broker.topics["t"] = 2

    async def work() -> None:
        other = world.add_broker(2)
        await other.start()
        world.broker.leaders["t", 1] = 2
        cluster = world.cluster()
        first = await cluster.leader(TopicPartition("t", 0))
        second = await cluster.leader(TopicPartition("t", 1))
        assert (first.address.host, second.address.host) == ("broker1", "broker2")
        assert await cluster.leader(TopicPartition("t", 1)) is second
        assert await cluster.broker(NodeId(2)) is second
        assert world.broker.count(ApiKey.METADATA) == 1

    world.run(work)


def test_an_unknown_topic_or_partition_is_told_at_once() -> None:
    world = World()

    async def work() -> None:
        cluster = world.cluster()
        with pytest.raises(UnknownTopic, match="no topic 'nope'"):
            await cluster.topic("nope")
        with pytest.raises(UnknownPartition, match="no partition 7: it has 1"):
            await cluster.leader(TopicPartition("t", 7))
        assert world.clock.monotonic() < 100

    world.run(work)


def test_a_topic_that_is_about_to_be_created_is_waited_for() -> None:
    world = World()

    async def work() -> None:
        cluster = world.cluster()
        world.loop.after(10**9, world.broker.topics.update, {"u": 3})
        topic = await cluster.topic("u", may_create=True)
        assert len(topic.partitions) == 3
        assert 1000 <= world.clock.monotonic() < 3000
        assert world.broker.requests[-1][2].allow_auto_topic_creation is True

    world.run(work)


def test_a_topic_that_no_broker_creates_is_given_up() -> None:
    world = World()

    async def work() -> None:
        with pytest.raises(Refused, match="no such topic"):
            await world.cluster().topic("u", may_create=True)
        assert world.clock.monotonic() < 6000

    world.run(work)


def test_a_lost_connection_is_opened_anew() -> None:
    world = World()

    async def work() -> None:
        cluster = world.cluster()
        await cluster.refresh()
        world.broker.script[ApiKey.METADATA] = [HANG_UP, HANG_UP]
        topic = await cluster.topic("t")
        assert topic.led == [0]
        assert world.broker.count(ApiKey.API_VERSIONS) == 3

    world.run(work)


def test_retries_end_with_the_deadline_and_grow_apart() -> None:
    world = World()
    attempts: list[int] = []

    async def work() -> None:
        cluster = world.cluster(settings=ClientSettings(deadline_ms=5_000))
        await cluster.refresh()

        async def attempt() -> None:
            attempts.append(world.clock.monotonic())
            raise Refused(ErrorCode.NOT_CONTROLLER)

        with pytest.raises(Refused, match="controller has moved"):
            await cluster.retrying(attempt)

    world.run(work)
    assert 4_000 < attempts[-1] < 5_100
    gaps = [later - earlier for earlier, later in itertools.pairwise(attempts)]
    assert gaps[0] < 100
    assert max(gaps) <= 1_201
    assert len(attempts) < 15


def test_what_cannot_succeed_is_not_tried_again() -> None:
    world = World()
    attempts: list[int] = []

    async def work() -> None:
        cluster = world.cluster()
        await cluster.refresh()

        async def attempt() -> None:
            attempts.append(1)
            raise Refused(ErrorCode.INVALID_CONFIG, "no such config")

        with pytest.raises(Refused, match="no such config"):
            await cluster.retrying(attempt)

    world.run(work)
    assert attempts == [1]


def test_a_partition_without_a_leader_is_looked_up_again() -> None:
    world = World()

    async def work() -> None:
        world.broker.leaders["t", 0] = -1
        cluster = world.cluster()
        with pytest.raises(Refused, match="no leader"):
            await cluster.leader_id(TopicPartition("t", 0))
        world.broker.leaders.clear()
        assert await cluster.leader_id(TopicPartition("t", 0)) == 1

    world.run(work)


def test_trouble_is_told_while_it_is_tried_again() -> None:
    world = World()
    told: list[str] = []

    async def work() -> None:
        cluster = world.cluster()
        cluster.on_trouble = lambda failure: told.append(str(failure))
        await cluster.refresh()
        world.broker.script[ApiKey.METADATA] = [HANG_UP]
        await cluster.topic("t")

    world.run(work)
    assert told == ["broker1:9092 closed the connection"]


def test_an_advertised_address_that_cannot_be_reached_is_called_so() -> None:
    world = World()

    async def work() -> None:
        world.broker.nodes.append(2)
        cluster = world.cluster()
        with pytest.raises(CannotConnect, match="the address that broker 2 advertises"):
            await cluster.broker(NodeId(2))

    world.run(work)


def test_the_metadata_of_a_broker_that_is_not_there_is_fetched_anew() -> None:
    world = World()

    async def work() -> None:
        world.broker.nodes.append(2)
        cluster = world.cluster()
        with pytest.raises(CannotConnect):
            await cluster.broker(NodeId(2))
        world.broker.nodes.remove(2)
        with pytest.raises(CannotConnect, match="not part of the cluster"):
            await cluster.broker(NodeId(2))

    world.run(work)


def test_admin_requests_pass_by_a_controller_that_is_not_there() -> None:
    world = World()

    async def work() -> None:
        world.broker.nodes.append(2)
        cluster = world.cluster()
        await cluster.refresh()
        cluster.metadata.controller_id = NodeId(2)
        connection = await cluster.controller()
        assert connection.address.host == "broker1"

    world.run(work)
