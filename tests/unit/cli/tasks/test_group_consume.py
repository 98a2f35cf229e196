"""`ottla consume --group` starts at the committed offsets, and commits printed records."""

import asyncio

import pytest

from ottla.cli.tasks import group_consume
from ottla.cli.tasks.client_options import Misuse
from ottla.cli.tasks.consume import Start
from ottla.cli.tasks.group_consume import check_options, read_as_member
from ottla.cli.views.record_output import RecordOutput
from ottla.client.offsets import EARLIEST, LATEST
from ottla.model.types import TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.records.record import Record, build_batch
from tests.unit.client.fake_broker import HANG_UP, World
from tests.unit.client.fake_coordinator import FakeCoordinator, world_with_groups

PRINTING = RecordOutput("text", False, False, False, False, b"\t", b" ", False)
FIRST = TopicPartition("t", 0)
Capture = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def quick_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake broker answers a fetch at once, so seconds of virtual time are long."""
    monkeypatch.setattr(group_consume, "HEARTBEAT_MS", 100)
    monkeypatch.setattr(group_consume, "POLL_MS", 50)


def write(world: World, *values: bytes) -> None:
    start = world.broker.end[FIRST]
    records = [Record(start + index, 0, None, value) for index, value in enumerate(values)]
    world.broker.log[FIRST] += build_batch(records, base_offset=start)
    world.broker.end[FIRST] += len(values)


async def read(world: World, *, to_end: bool = True, messages_max: int | None = None) -> None:
    await read_as_member(
        world.cluster(),
        "t",
        "g",
        Start(special=EARLIEST),
        PRINTING,
        to_end=to_end,
        messages_max=messages_max,
        is_committed_only=False,
    )


def prepared() -> tuple[World, FakeCoordinator]:
    world, coordinator = world_with_groups()
    write(world, b"a", b"b", b"c")
    return world, coordinator


def test_printed_records_are_committed_and_the_next_run_continues(capsysbinary: Capture) -> None:
    world, coordinator = prepared()

    async def work() -> None:
        await read(world, messages_max=2)
        assert coordinator.offsets["g"] == {FIRST: 2}
        assert not coordinator.joined
        await read(world)
        assert coordinator.offsets["g"] == {FIRST: 3}

    world.run(work)
    shown = capsysbinary.readouterr()
    assert shown.out == b"a b c "
    assert shown.err == b"2 records read.\n1 record read.\n"


def test_the_member_rejoins_on_a_rebalance(capsysbinary: Capture) -> None:
    world, coordinator = prepared()

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(read(world, to_end=False))
            await asyncio.sleep(0.5)
            assert coordinator.offsets["g"] == {FIRST: 3}
            coordinator.is_rebalancing = True
            await asyncio.sleep(0.5)
            assert coordinator.generation == 2
            write(world, b"d")
            await asyncio.sleep(1)
            reading.cancel()

    world.run(work)
    assert capsysbinary.readouterr().out == b"a b c d "
    assert coordinator.offsets["g"] == {FIRST: 4}
    assert not coordinator.joined


def test_ctrl_c_ends_within_a_second_when_the_broker_is_gone(capsysbinary: Capture) -> None:
    world, coordinator = prepared()

    async def work() -> None:
        reading = asyncio.ensure_future(read(world, to_end=False))
        await asyncio.sleep(0.5)
        world.broker.always[ApiKey.OFFSET_COMMIT] = lambda _request, _version: HANG_UP
        write(world, b"d")
        await asyncio.sleep(0.5)
        world.broker.stop()
        world.broker.always[ApiKey.FETCH] = lambda _request, _version: HANG_UP
        await asyncio.sleep(5)
        before = world.cluster().clock.monotonic()
        reading.cancel()
        await reading
        assert world.cluster().clock.monotonic() - before <= 1_100

    world.run(work)
    shown = capsysbinary.readouterr()
    assert shown.out == b"a b c d "
    assert b"not committed: t-0 4\n" in shown.err
    assert coordinator.offsets["g"] == {FIRST: 3}


def test_a_member_without_partitions_waits(capsysbinary: Capture) -> None:
    world, coordinator = prepared()
    own = coordinator.serve_sync_group
    is_ours = False

    def share(request: object, version: int) -> object:
        answer = own(request, version)  # type: ignore[arg-type]
        return answer if is_ours else type(answer)(assignment=b"")

    world.broker.always[next(k for k in world.broker.always if k.name == "SYNC_GROUP")] = share

    async def work() -> None:
        nonlocal is_ours
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(read(world, to_end=False))
            await asyncio.sleep(0.5)
            is_ours = coordinator.is_rebalancing = True
            await asyncio.sleep(1)
            reading.cancel()

    world.run(work)
    assert capsysbinary.readouterr().out == b"a b c "


@pytest.mark.parametrize("start", [Start(offset=5), Start(time="-10m"), Start(back=3)])
def test_a_start_position_is_refused_with_group(start: Start) -> None:
    with pytest.raises(Misuse, match="reset-offsets"):
        check_options(start, [])


def test_partitions_are_refused_with_group() -> None:
    with pytest.raises(Misuse, match="shares them out"):
        check_options(Start(special=LATEST), [1])
    check_options(Start(special=LATEST), [])
