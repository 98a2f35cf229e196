"""A producer: where records go, how much it holds, what leaving it means."""

import asyncio

import pytest

from ottla.client.delivery import ProducerSettings, Written
from ottla.client.errors import Refused
from ottla.client.metadata import UnknownPartition
from ottla.client.partitioner import partition_of_key
from ottla.client.producer import Producer
from ottla.client.unpacking import unpack
from ottla.model.errors import ErrorCode
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import produce as wire
from tests.unit.client.fake_broker import World


def refused(code: ErrorCode, words: str | None = None):  # noqa: ANN201
    def answer(request: wire.Request, version: int) -> wire.Response:
        topic = request.topic_data[0]
        result = wire.PartitionProduceResponse(0, code, error_message=words)
        return wire.Response([wire.TopicProduceResponse(topic.name, topic.topic_id, [result])])

    return answer


def values(world: World, partition: int = 0) -> list[bytes | None]:
    data = bytes(world.broker.log["t", partition])
    messages, _ = unpack(TopicPartition("t", partition), data, offset=0)
    return [message.value for message in messages]


def test_records_arrive_whole_and_in_order_and_the_offsets_are_told() -> None:
    world = World()

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            first = await producer.send("t", b"a", b"k", headers=(("h", b"1"),), timestamp_ms=5)
            second = await producer.send("t", None)
            assert await first == Written("t", 0, 0, 5)
            assert (await second).offset == 1
        data = bytes(world.broker.log["t", 0])
        messages, _ = unpack(TopicPartition("t", 0), data, offset=0)
        assert messages[0][3:] == (5, False, b"k", b"a", (("h", b"1"),))
        assert messages[1].value is None
        assert abs(messages[1].timestamp_ms - world.clock.wall()) < 100
        assert world.broker.count(ApiKey.PRODUCE) == 1

    world.run(work)


def test_a_key_decides_the_partition_and_a_number_overrides_it() -> None:
    world = World()
    world.broker.topics["t"] = 8

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            for index in range(20):
                key = str(index).encode()
                written = await (await producer.send("t", b"v", key))
                assert written.partition == partition_of_key(key, 8)
            chosen = await (await producer.send("t", b"v", b"0", partition=7))
            assert chosen.partition == 7
            with pytest.raises(UnknownPartition):
                await producer.send("t", b"v", partition=8)

    world.run(work)


def test_records_without_a_key_go_where_there_is_a_leader() -> None:
    world = World()
    world.broker.topics["t"] = 4
    world.broker.leaders.update({("t", 0): -1, ("t", 1): -1, ("t", 3): -1})

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            for _ in range(5):
                assert (await (await producer.send("t", b"v"))).partition == 2

    world.run(work)


def test_leaving_the_block_waits_until_all_is_written() -> None:
    world = World()

    async def work() -> None:
        async with Producer(world.cluster(), ProducerSettings(linger_ms=10_000)) as producer:
            for index in range(3):
                await producer.send("t", b"%d" % index)
        assert values(world) == [b"0", b"1", b"2"]
        assert world.clock.monotonic() < 1000

    world.run(work)


def test_leaving_the_block_by_an_exception_waits_for_nothing_and_hides_nothing() -> None:
    world = World()

    async def work() -> None:
        async def leave() -> None:
            async with Producer(world.cluster(), ProducerSettings(linger_ms=10_000)) as producer:
                await producer.send("t", b"v")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await leave()
        assert values(world) == []

    world.run(work)


def test_a_failure_is_raised_by_flush_once_and_by_the_records_own_future() -> None:
    world = World()
    world.broker.script[ApiKey.PRODUCE] = [refused(ErrorCode.INVALID_RECORD, "no key")]

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            future = await producer.send("t", b"v")
            with pytest.raises(Refused, match="t-0: no key"):
                await producer.flush()
            with pytest.raises(Refused):
                await future
            await producer.flush()
            assert (await (await producer.send("t", b"w"))).offset == 0

    world.run(work)


def test_what_is_not_written_yet_is_bounded() -> None:
    world = World()
    settings = ProducerSettings(buffer_bytes_max=10_000, batch_bytes_max=2_000)
    most = 0

    async def work() -> None:
        nonlocal most
        async with Producer(world.cluster(), settings) as producer:
            for _ in range(100):
                await producer.send("t", b"x" * 1000)
                most = max(most, producer.unwritten_bytes)
        assert producer.unwritten_bytes == 0

    world.run(work)
    assert 9_000 < most <= 11_100
    assert len(values(world)) == 100


def test_two_tasks_may_send_at_once() -> None:
    world = World()

    async def work() -> None:
        async with Producer(world.cluster()) as producer:

            async def send(name: bytes) -> None:
                for index in range(50):
                    await producer.send("t", name + b"%d" % index)
                    await asyncio.sleep(0.001)

            await asyncio.gather(send(b"a"), send(b"b"))
        for name in (b"a", b"b"):
            own = [value for value in values(world) if value and value.startswith(name)]
            assert own == [name + b"%d" % index for index in range(50)]

    world.run(work)
