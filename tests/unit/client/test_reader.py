"""Reading by assignment: in order, from many leaders, through failures."""

import pytest

from ottla.client.cluster import ClientSettings
from ottla.client.errors import ClientError, Refused
from ottla.client.offsets import READ_COMMITTED
from ottla.client.reader import Reader, ReaderSettings
from ottla.model.errors import ErrorCode
from ottla.model.types import NodeId, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import fetch as wire
from ottla.records.record import Record, build_batch
from tests.unit.client.fake_broker import HANG_UP, SILENCE, FakeBroker, World

PLACE = TopicPartition("t", 0)


def write(broker: FakeBroker, *values: bytes, place: TopicPartition = PLACE) -> None:
    start = broker.end[place]
    records = [Record(start + index, 0, None, value) for index, value in enumerate(values)]
    broker.log[place] += build_batch(records)
    broker.end[place] += len(values)


def refused(code: ErrorCode):  # noqa: ANN201
    def answer(request: wire.Request, version: int) -> wire.Response:
        topic = request.topics[0]
        result = wire.PartitionData(topic.partitions[0].partition, code)
        return wire.Response(
            responses=[wire.FetchableTopicResponse(topic.topic, topic.topic_id, [result])]
        )

    return answer


def hold(world: World, broker: FakeBroker) -> None:
    """Let a fetch that finds nothing wait, as a real broker does."""

    def answer(request: wire.Request, version: int) -> object:
        found = broker.serve_fetch(request, version)
        if any(part.records for topic in found.responses for part in topic.partitions):
            return found
        return SILENCE

    broker.always[ApiKey.FETCH] = answer


async def read(reader: Reader, wait_ms: int = 1000) -> list[bytes | None]:
    return [message.value for message in await reader.poll(wait_ms)]


async def poll_for_ever(reader: Reader) -> None:
    while True:
        await reader.poll(1000)


def test_it_reads_from_an_offset_on_and_goes_on_where_it_was() -> None:
    world = World()

    async def work() -> None:
        write(world.broker, b"a", b"b", b"c")
        reader = Reader(world.cluster(), {PLACE: 1})
        assert await read(reader) == [b"b", b"c"]
        assert reader.positions == {PLACE: 3}
        write(world.broker, b"d")
        assert await read(reader) == [b"d"]

    world.run(work)


def test_no_news_in_time_is_no_failure() -> None:
    world = World()

    async def work() -> None:
        hold(world, world.broker)
        reader = Reader(world.cluster(), {PLACE: 0})
        assert await read(reader, 700) == []
        assert 700 <= world.clock.monotonic() < 800
        assert world.broker.count(ApiKey.FETCH) == 1  # It stays under way.

    world.run(work)


def test_a_quiet_leader_does_not_hold_up_a_busy_one() -> None:
    world = World()
    world.broker.topics["t"] = 2

    async def work() -> None:
        busy = world.add_broker(2)
        await busy.start()
        world.broker.leaders["t", 1] = 2
        hold(world, world.broker)
        other = TopicPartition("t", 1)
        write(busy, b"x", place=other)
        reader = Reader(world.cluster(), {PLACE: 0, other: 0})
        assert await read(reader) == [b"x"]
        write(busy, b"y", place=other)
        assert await read(reader) == [b"y"]
        assert world.clock.monotonic() < 100
        assert world.broker.count(ApiKey.FETCH) == 1

    world.run(work)


def test_a_fetch_that_waits_holds_up_nobody_else() -> None:
    world = World()

    async def work() -> None:
        hold(world, world.broker)
        cluster = world.cluster()
        reader = Reader(cluster, {PLACE: 0})
        await reader.poll(10)
        fetching = await cluster.broker(NodeId(1), lane=reader)
        assert fetching is not await cluster.broker(NodeId(1))
        assert fetching is not await cluster.any_broker()
        assert fetching.under_way == 1
        reader.close()
        assert not fetching.is_open
        assert (await cluster.any_broker()).is_open

    world.run(work)


@pytest.mark.parametrize(
    "trouble",
    [HANG_UP, refused(ErrorCode.NOT_LEADER_OR_FOLLOWER), refused(ErrorCode.UNKNOWN_TOPIC_ID)],
)
def test_trouble_that_passes_is_not_seen(trouble: object) -> None:
    world = World()

    async def work() -> None:
        write(world.broker, b"a")
        world.broker.script[ApiKey.FETCH] = [trouble, trouble]
        reader = Reader(world.cluster(), {PLACE: 0})
        assert await read(reader, 5000) == [b"a"]

    world.run(work)


def test_trouble_that_stays_is_told() -> None:
    world = World()

    async def work() -> None:
        world.broker.always[ApiKey.FETCH] = refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        reader = Reader(world.cluster(settings=ClientSettings(deadline_ms=3000)), {PLACE: 0})
        with pytest.raises(Refused, match="t-0 at offset 0: the partition's leader has moved"):
            await poll_for_ever(reader)
        assert world.clock.monotonic() < 6000

    world.run(work)


def test_an_offset_out_of_range_is_told_at_once() -> None:
    world = World()

    async def work() -> None:
        world.broker.always[ApiKey.FETCH] = refused(ErrorCode.OFFSET_OUT_OF_RANGE)
        reader = Reader(world.cluster(), {PLACE: 9})
        with pytest.raises(Refused, match="t-0 at offset 9"):
            await reader.poll(60_000)
        assert world.clock.monotonic() < 100

    world.run(work)


def test_a_broker_that_never_answers_is_left() -> None:
    world = World()

    async def work() -> None:
        write(world.broker, b"a")
        world.broker.script[ApiKey.FETCH] = [SILENCE]
        settings = ClientSettings(request_ms_max=2000)
        reader = Reader(world.cluster(settings=settings), {PLACE: 0})
        got: list[bytes | None] = []
        while not got:
            got = await read(reader)
        assert got == [b"a"]
        assert 2500 <= world.clock.monotonic() < 6000

    world.run(work)


def test_a_partition_that_was_stopped_gives_nothing_more() -> None:
    world = World()
    world.broker.topics["t"] = 2
    other = TopicPartition("t", 1)

    async def work() -> None:
        write(world.broker, b"a")
        write(world.broker, b"b", place=other)
        reader = Reader(world.cluster(), {PLACE: 0, other: 0})
        reader.stop(PLACE)
        assert await read(reader) == [b"b"]
        reader.stop(other)
        assert await read(reader) == []

    world.run(work)


def test_messages_that_came_are_given_although_another_partition_failed() -> None:
    world = World()
    world.broker.topics["t"] = 2
    other = TopicPartition("t", 1)

    async def work() -> None:
        write(world.broker, b"a")
        world.broker.log[other] += b"\x00" * 8 + b"\x00\x00\x00\x31" + b"\x07" * 49
        world.broker.end[other] = 1
        reader = Reader(world.cluster(), {PLACE: 0, other: 0})
        assert await read(reader) == [b"a"]
        with pytest.raises(ClientError, match="format 7"):
            await reader.poll(1000)

    world.run(work)


def test_read_committed_is_asked_for_and_hides_what_was_aborted() -> None:
    world = World()

    async def work() -> None:
        records = [Record(0, 0, None, b"gone")]
        world.broker.log[PLACE] += build_batch(records, producer_id=7, is_transactional=True)
        world.broker.end[PLACE] = 1
        write(world.broker, b"kept")

        def answer(request: wire.Request, version: int) -> wire.Response:
            found = world.broker.serve_fetch(request, version)
            found.responses[0].partitions[0].aborted_transactions = [wire.AbortedTransaction(7, 0)]
            return found

        world.broker.always[ApiKey.FETCH] = answer
        reader = Reader(world.cluster(), {PLACE: 0}, ReaderSettings(isolation=READ_COMMITTED))
        assert await read(reader) == [b"kept"]
        assert world.broker.requests[-1][2].isolation_level == READ_COMMITTED

    world.run(work)


def test_a_broker_without_topic_ids_is_read_by_name() -> None:
    world = World()
    world.broker.ranges[ApiKey.METADATA] = range(0, 10)

    async def work() -> None:
        write(world.broker, b"a")
        assert await read(Reader(world.cluster(), {PLACE: 0})) == [b"a"]
        assert world.broker.requests[-1][1] == 12

    world.run(work)


def test_a_fetch_names_the_leader_epoch_that_we_know() -> None:
    world = World()

    async def work() -> None:
        write(world.broker, b"a")
        cluster = world.cluster()
        reader = Reader(cluster, {PLACE: 0})
        known = await cluster.topic(PLACE.topic)
        known.partitions[PLACE.partition].leader_epoch = 7
        await read(reader)
        fetched = world.broker.requests[-1][2].topics[0].partitions[0]
        assert fetched.current_leader_epoch == 7

    world.run(work)


def named(replica: int):  # noqa: ANN201
    """A leader's answer that sends a reader to another replica."""

    def answer(request: wire.Request, version: int) -> wire.Response:
        topic = request.topics[0]
        result = wire.PartitionData(
            topic.partitions[0].partition, high_watermark=2, preferred_read_replica=replica
        )
        return wire.Response(
            responses=[wire.FetchableTopicResponse(topic.topic, topic.topic_id, [result])]
        )

    return answer


def test_a_reader_with_a_rack_reads_the_replica_that_its_leader_names() -> None:
    world = World()
    follower = world.add_broker(2)

    async def work() -> None:
        await follower.start()
        world.broker.always[ApiKey.FETCH] = named(2)
        write(follower, b"a", b"b")
        reader = Reader(world.cluster(), {PLACE: 0}, ReaderSettings(rack="r2"))
        assert await read(reader) == [b"a", b"b"]
        asked = [request for key, _, request in world.broker.requests if key is ApiKey.FETCH]
        assert [request.rack_id for request in asked] == ["r2"]

    world.run(work)


@pytest.mark.parametrize("code", [ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_nearer_replica_that_refuses_is_left_for_the_leader(code: ErrorCode) -> None:
    world = World()
    follower = world.add_broker(2)

    async def work() -> None:
        await follower.start()
        world.broker.script[ApiKey.FETCH] = [named(2)]
        follower.always[ApiKey.FETCH] = refused(code)
        write(world.broker, b"a")
        reader = Reader(world.cluster(), {PLACE: 0}, ReaderSettings(rack="r2"))
        assert await read(reader) == [b"a"]
        assert follower.count(ApiKey.FETCH) == 1

    world.run(work)
