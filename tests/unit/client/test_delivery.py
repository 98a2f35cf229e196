"""Batches on their way: once and in order, whatever the network and the broker do."""

import pytest

from ottla.client.delivery import ProducerSettings
from ottla.client.errors import OUT_OF_SEQUENCE, ClientError, Refused, RequestTimeout
from ottla.client.idempotence import EPOCH_MAX, Identity, Numbering
from ottla.client.producer import Producer
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages import init_producer_id
from ottla.protocol.messages import produce as wire
from ottla.records.batch import Batch
from tests.unit.client.fake_broker import HANG_UP, SILENCE, World
from tests.unit.client.test_producer import refused, values


def produced(world: World) -> list[Batch]:
    return [
        Batch(request.topic_data[0].partition_data[0].records)
        for key, _, request in world.broker.requests
        if key == ApiKey.PRODUCE
    ]


def write_then(world: World, then: object):  # noqa: ANN201
    """The broker writes the batch, and its answer is lost, or another one."""

    def step(request: wire.Request, version: int) -> object:
        world.broker.serve_produce(request, version)
        return then(request, version) if callable(then) else then

    return step


@pytest.mark.parametrize("lost_by", [HANG_UP, SILENCE])
def test_a_batch_whose_answer_was_lost_is_sent_again_as_the_same_batch(lost_by: object) -> None:
    world = World()
    world.broker.script[ApiKey.PRODUCE] = [write_then(world, lost_by)]

    async def work() -> None:
        async with Producer(world.cluster(), ProducerSettings(request_ms_max=1000)) as producer:
            await (await producer.send("t", b"a"))
            await (await producer.send("t", b"b"))
        first, again, second = produced(world)
        assert bytes(first.data) == bytes(again.data)
        assert (first.base_sequence, second.base_sequence) == (0, 1)
        assert values(world) == [b"a", b"b"]

    world.run(work)


def test_records_of_a_partition_stay_in_order_while_its_leader_moves() -> None:
    world = World()
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.broker.script[ApiKey.PRODUCE] = [refused(code), refused(code), refused(code)]

    async def work() -> None:
        async with Producer(world.cluster(), ProducerSettings(batch_bytes_max=60)) as producer:
            for index in range(10):
                await producer.send("t", b"%d" % index)
        assert values(world) == [b"%d" % index for index in range(10)]
        assert world.broker.count(ApiKey.METADATA) >= 4  # Where the leader is was asked each time.

    world.run(work)


def test_a_batch_that_is_too_large_is_sent_in_halves() -> None:
    world = World()

    def small_only(request: wire.Request, version: int) -> object:
        if len(request.topic_data[0].partition_data[0].records or b"") > 200:
            return refused(ErrorCode.MESSAGE_TOO_LARGE)(request, version)
        return world.broker.serve_produce(request, version)

    world.broker.always[ApiKey.PRODUCE] = small_only

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            futures = [await producer.send("t", b"%02d" % index * 15) for index in range(10)]
        assert [(await future).offset for future in futures] == list(range(10))
        assert values(world) == [b"%02d" % index * 15 for index in range(10)]

    world.run(work)


def test_halves_of_a_batch_that_may_be_written_are_not_sent_under_another_epoch() -> None:
    """As halves it is out of sequence; under the next epoch it would be written again."""
    world = World()
    out_of_order = refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.broker.script[ApiKey.PRODUCE] = [
        write_then(world, HANG_UP),
        refused(ErrorCode.MESSAGE_TOO_LARGE),  # The topic takes less since.
    ]
    world.broker.always[ApiKey.PRODUCE] = out_of_order

    async def work() -> None:
        settings = ProducerSettings(delivery_ms_max=3_000)
        async with Producer(world.cluster(), settings) as producer:
            futures = [await producer.send("t", value) for value in (b"a", b"b")]
            with pytest.raises(Refused, match="OUT_OF_ORDER"):
                await producer.flush()
            for future in futures:
                with pytest.raises(Refused):
                    await future
        assert values(world) == [b"a", b"b"]
        assert {batch.producer_epoch for batch in produced(world)[:-1]} == {0}

    world.run(work)


def test_a_batch_that_was_not_written_goes_in_halves_though_an_attempt_had_no_answer() -> None:
    world = World()
    world.broker.script[ApiKey.PRODUCE] = [HANG_UP, refused(ErrorCode.MESSAGE_TOO_LARGE)]

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            for value in (b"a", b"b"):
                await producer.send("t", value)
        assert values(world) == [b"a", b"b"]

    world.run(work)


def test_one_record_that_is_too_large_fails_and_the_next_is_written() -> None:
    world = World()
    world.broker.script[ApiKey.PRODUCE] = [refused(ErrorCode.MESSAGE_TOO_LARGE)]

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            future = await producer.send("t", b"large")
            with pytest.raises(Refused, match=r"max\.message\.bytes"):
                await producer.flush()
            with pytest.raises(Refused):
                await future
            await producer.send("t", b"small")
        assert values(world) == [b"small"]
        large, small = produced(world)
        assert small.base_sequence == 0  # What was refused used no sequence, and no epoch.
        assert small.producer_epoch == large.producer_epoch

    world.run(work)


def test_nothing_follows_a_record_that_failed_where_that_was_asked_for() -> None:
    world = World()
    world.broker.script[ApiKey.PRODUCE] = [refused(ErrorCode.MESSAGE_TOO_LARGE)]

    async def work() -> None:
        settings = ProducerSettings(stops_at_failure=True)
        async with Producer(world.cluster(), settings) as producer:
            await producer.send("t", b"large", partition=0)
            with pytest.raises(Refused):
                await producer.flush()
            later = await producer.send("t", b"later", partition=0)
            with pytest.raises(Refused, match=r"max\.message\.bytes"):
                await producer.flush()
            with pytest.raises(Refused):
                await later
        assert values(world) == []
        assert len(produced(world)) == 1

    world.run(work)


@pytest.mark.parametrize("code", sorted(OUT_OF_SEQUENCE))
def test_batch_out_of_sequence_that_was_never_written_goes_on_in_the_next_epoch(
    code: ErrorCode,
) -> None:
    world = World()

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            await (await producer.send("t", b"a"))
            world.broker.script[ApiKey.PRODUCE] = [refused(code)]
            await (await producer.send("t", b"b"))
            await (await producer.send("t", b"c"))
        first, _, again, last = produced(world)
        assert {batch.producer_id for batch in produced(world)} == {first.producer_id}
        assert (again.producer_epoch, again.base_sequence) == (first.producer_epoch + 1, 0)
        assert (last.producer_epoch, last.base_sequence) == (first.producer_epoch + 1, 1)
        assert values(world) == [b"a", b"b", b"c"]

    world.run(work)


def test_last_epoch_of_a_producer_is_followed_by_a_new_id() -> None:
    world = World()

    async def work() -> None:
        world.broker.script[ApiKey.INIT_PRODUCER_ID] = [
            init_producer_id.Response(producer_id=7, producer_epoch=EPOCH_MAX)
        ]
        async with Producer(world.cluster()) as producer:
            await (await producer.send("t", b"a"))
            world.broker.script[ApiKey.PRODUCE] = [refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)]
            await (await producer.send("t", b"b"))
        first, *_, last = produced(world)
        assert (first.producer_id, last.producer_epoch, last.base_sequence) == (7, 0, 0)
        assert last.producer_id != 7
        assert values(world) == [b"a", b"b"]

    world.run(work)


@pytest.mark.parametrize("code", sorted(OUT_OF_SEQUENCE))
def test_batch_that_may_be_written_is_sent_again_as_it_is_when_out_of_sequence(
    code: ErrorCode,
) -> None:
    """A deposed leader may have answered: the leader drops the duplicate, or takes the batch."""
    world = World()
    world.broker.script[ApiKey.PRODUCE] = [write_then(world, HANG_UP), refused(code), refused(code)]

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            await producer.send("t", b"a")
            await producer.flush()
            await producer.send("t", b"b")
        first, *again, last = produced(world)
        assert [bytes(batch.data) for batch in again] == [bytes(first.data)] * 3
        assert (last.producer_epoch, last.base_sequence) == (first.producer_epoch, 1)
        assert values(world) == [b"a", b"b"]

    world.run(work)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_batch_of_a_leader_that_was_deposed_is_not_written_twice(code: ErrorCode) -> None:
    """It has appended and replicated the batch; another deposed one is asked next."""
    world = World()
    out_of_order = refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    world.broker.script[ApiKey.PRODUCE] = [write_then(world, refused(code)), out_of_order]

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            await producer.send("t", b"a")
            await producer.flush()
        assert {bytes(batch.data) for batch in produced(world)} == {bytes(produced(world)[0].data)}
        assert values(world) == [b"a"]

    world.run(work)


def test_batch_that_may_be_written_fails_when_it_is_out_of_sequence_until_its_deadline() -> None:
    world = World()
    code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    async def work() -> None:
        async with Producer(world.cluster(), ProducerSettings(delivery_ms_max=5_000)) as producer:
            world.broker.script[ApiKey.PRODUCE] = [write_then(world, HANG_UP)]
            world.broker.always[ApiKey.PRODUCE] = refused(code)
            await producer.send("t", b"a")
            with pytest.raises(Refused):
                await producer.flush()
            del world.broker.always[ApiKey.PRODUCE]
            await producer.send("t", b"b")
        first, *_, last = produced(world)
        assert (last.producer_id, last.producer_epoch) == (first.producer_id, 1)
        assert values(world) == [b"a", b"b"]

    world.run(work)


def test_producer_with_a_given_numbering_never_uses_another() -> None:
    world = World()
    numbering = Numbering(Identity(77, 3), 5)

    async def work() -> None:
        world.broker.seen["t", 0, 77] = (3, 5)
        async with Producer(world.cluster(), numbering=lambda _: numbering) as producer:
            await (await producer.send("t", b"a"))
            world.broker.seen["t", 0, 77] = (3, 4)  # Another process has written, or it is behind.
            for value in (b"b", b"c"):
                await producer.send("t", value)
                with pytest.raises(Refused) as failure:
                    await producer.flush()
                assert failure.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert values(world) == [b"a"]
        assert [batch.base_sequence for batch in produced(world)] == [5, 6], "c is not sent"
        assert world.broker.count(ApiKey.INIT_PRODUCER_ID) == 0

    world.run(work)


def test_delivery_ends_with_its_deadline_and_the_next_batch_has_the_next_epoch() -> None:
    world = World()
    settings = ProducerSettings(delivery_ms_max=5_000, request_ms_max=2_000)

    async def work() -> None:
        async with Producer(world.cluster(), settings) as producer:
            await (await producer.send("t", b"a"))
            world.broker.always[ApiKey.PRODUCE] = lambda request, version: SILENCE
            await producer.send("t", b"lost")
            with pytest.raises(RequestTimeout):
                await producer.flush()
            assert 4_000 < world.clock.monotonic() < 9_000
            del world.broker.always[ApiKey.PRODUCE]
            await producer.send("t", b"b")
        first, *_, last = produced(world)
        assert (last.producer_id, last.producer_epoch) == (first.producer_id, 1)
        assert values(world) == [b"a", b"b"]

    world.run(work)


def test_a_duplicate_that_the_broker_no_longer_remembers_counts_as_written() -> None:
    world = World()
    world.broker.script[ApiKey.PRODUCE] = [refused(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)]

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            assert (await (await producer.send("t", b"a"))).offset == -1

    world.run(work)


def test_with_acks_0_nothing_is_waited_for_and_no_id_is_used() -> None:
    world = World()

    async def work() -> None:
        async with Producer(world.cluster(), ProducerSettings(acks=0)) as producer:
            assert (await (await producer.send("t", b"a"))).offset == -1
            await (await producer.send("t", b"b"))
        await world.cluster().refresh()
        assert values(world) == [b"a", b"b"]
        assert world.broker.count(ApiKey.INIT_PRODUCER_ID) == 0
        assert produced(world)[0].producer_id == -1

    world.run(work)


def test_a_broker_without_topic_ids_is_written_to_by_name() -> None:
    world = World()
    world.broker.ranges[ApiKey.METADATA] = range(0, 10)

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            await producer.send("t", b"a")
        version = next(v for key, v, _ in world.broker.requests if key == ApiKey.PRODUCE)
        assert version == 12
        assert values(world) == [b"a"]

    world.run(work)


def test_batches_are_compressed_by_the_codec_asked_for() -> None:
    world = World()

    async def work() -> None:
        for codec in range(5):
            async with Producer(world.cluster(), ProducerSettings(codec=codec)) as producer:
                await producer.send("t", b"x" * 500)
        assert [batch.codec for batch in produced(world)] == [0, 1, 2, 3, 4]
        assert values(world) == [b"x" * 500] * 5

    world.run(work)


def test_a_topic_that_was_deleted_meanwhile_fails_its_records() -> None:
    world = World()

    async def work() -> None:
        async with Producer(world.cluster()) as producer:
            await (await producer.send("t", b"a"))
            world.broker.topics.clear()
            world.broker.script[ApiKey.PRODUCE] = [refused(ErrorCode.UNKNOWN_TOPIC_ID)]
            await producer.send("t", b"b")
            with pytest.raises(ClientError, match="no topic 't'"):
                await producer.flush()

    world.run(work)


def test_batch_that_may_be_written_fails_when_its_epoch_is_over() -> None:
    world = World()
    over = refused(ErrorCode.INVALID_PRODUCER_EPOCH)
    world.broker.script[ApiKey.PRODUCE] = [write_then(world, SILENCE), over]

    async def work() -> None:
        async with Producer(world.cluster(), ProducerSettings(request_ms_max=1000)) as producer:
            future = await producer.send("t", b"a")
            with pytest.raises(Refused):
                await producer.flush()
            with pytest.raises(Refused):
                await future
        assert values(world) == [b"a"]
        assert len(produced(world)) == 2

    world.run(work)
